// SPDX-License-Identifier: Apache-2.0
// Attachments as text for people and as JSON for programs. Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "tools/agent/attachment.h"

namespace holdfast::agent {

/// Ends with a newline.
[[nodiscard]] std::string text_report(const std::vector<Attachment>& attachments);

/// {"interfaces": [{"interface", "index", "running", "mode", "program_id", "vips", "lbs", "locals",
/// "counters": {OUTCOME: packets}}]}; "mode" is null if not running. One line, its end included.
[[nodiscard]] std::string json_report(const std::vector<Attachment>& attachments);

}  // namespace holdfast::agent
