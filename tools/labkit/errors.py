# SPDX-License-Identifier: Apache-2.0
"""The one exception of the lab: its text is a sentence for the person at the terminal."""


class LabError(Exception):
    pass
