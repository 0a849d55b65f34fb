/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A snapshot as text, as JSON, or as the XML of malloc_info(3), to a sink. Allocates nothing.
 */
#ifndef WR_REPORT_H
#define WR_REPORT_H

#include "snapshot.h"
#include "text.h"

/* Each returns 0 or the sink's first errno value. */
int wr_report_text(const struct wr_snapshot *snapshot, wr_text_sink sink, void *context);
int wr_report_json(const struct wr_snapshot *snapshot, wr_text_sink sink, void *context);
int wr_report_xml(const struct wr_snapshot *snapshot, wr_text_sink sink, void *context);

/* Writes it to a file descriptor, as JSON or as text. */
int wr_report_snapshot(const struct wr_snapshot *snapshot, int fd, bool json);

/* Takes a snapshot of the arena and writes it to a file descriptor, as JSON or as text. */
int wr_report_arena(struct wr_arena *arena, int fd, bool json);

#endif
