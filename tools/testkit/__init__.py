# SPDX-License-Identifier: Apache-2.0
"""What tools/test and tools/lint are made of."""
