# SPDX-License-Identifier: Apache-2.0
"""The parts of bench/compare: arms, cells, running and counting, statistics, tables, summaries."""
