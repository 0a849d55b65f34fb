/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports: see report.h. No lock; the snapshot is the caller's.
 */
#include "report.h"

#include "os.h"

struct line {
  const char *name;
  const char *text;
  size_t offset;
};

static const struct line lines[] = {
#define WEIR_STAT(name, kind, text) {#name, text, offsetof(weir_stats_t, name)},
#include <weir/counters.def>
#undef WEIR_STAT
};

#define LINES (sizeof lines / sizeof lines[0])

static uint64_t value_of(const struct wr_snapshot *snapshot, const struct line *line) {
  return *(const uint64_t *)(const void *)((const char *)&snapshot->stats + line->offset);
}

int wr_report_text(const struct wr_snapshot *snapshot, wr_text_sink sink, void *context) {
  struct wr_text text;
  wr_text_begin(&text, sink, context);
  wr_text_string(&text, "weir " WEIR_VERSION ", process ");
  wr_text_number(&text, wr_os_process());
  if (snapshot->name[0] != '\0') {
    wr_text_string(&text, ", arena ");
    wr_text_string(&text, snapshot->name);
  }
  wr_text_string(&text, "\n");
  for (unsigned i = 0; i < LINES; i++) {
    wr_text_string(&text, "  ");
    wr_text_left(&text, lines[i].name, 16);
    wr_text_right(&text, value_of(snapshot, &lines[i]), 20);
    wr_text_string(&text, "  ");
    wr_text_string(&text, lines[i].text);
    wr_text_string(&text, "\n");
  }
  wr_text_string(&text, "   block     slabs        live        free\n");
  for (unsigned i = 0; i < WR_CLASSES; i++) {
    const weir_class_stats_t *class = &snapshot->classes[i];
    if (class->slabs == 0)
      continue;
    wr_text_right(&text, class->block, 8);
    wr_text_right(&text, class->slabs, 10);
    wr_text_right(&text, class->live, 12);
    wr_text_right(&text, class->free, 12);
    wr_text_string(&text, "\n");
  }
  return wr_text_end(&text);
}

int wr_report_json(const struct wr_snapshot *snapshot, wr_text_sink sink, void *context) {
  struct wr_text text;
  const char *comma = "";
  uint64_t number;
  wr_text_begin(&text, sink, context);
  wr_text_string(&text, "{\"weir\":\"" WEIR_VERSION "\",\"pid\":");
  wr_text_number(&text, wr_os_process());
  wr_text_string(&text, ",\"arena\":\"");
  wr_text_json(&text, snapshot->name);
  wr_text_string(&text, "\"");
  for (unsigned i = 0; i < LINES; i++) {
    wr_text_string(&text, ",\"");
    wr_text_json(&text, lines[i].name);
    wr_text_string(&text, "\":");
    /* Many readers know no larger numbers; an unlimited mark is one. */
    number = value_of(snapshot, &lines[i]);
    wr_text_number(&text, number < INT64_MAX ? number : INT64_MAX);
  }
  wr_text_string(&text, ",\"classes\":[");
  for (unsigned i = 0; i < WR_CLASSES; i++) {
    const weir_class_stats_t *class = &snapshot->classes[i];
    if (class->slabs == 0)
      continue;
    wr_text_string(&text, comma);
    wr_text_string(&text, "{\"block\":");
    wr_text_number(&text, class->block);
    wr_text_string(&text, ",\"slabs\":");
    wr_text_number(&text, class->slabs);
    wr_text_string(&text, ",\"live\":");
    wr_text_number(&text, class->live);
    wr_text_string(&text, ",\"free\":");
    wr_text_number(&text, class->free);
    wr_text_string(&text, "}");
    comma = ",";
  }
  wr_text_string(&text, "]}\n");
  return wr_text_end(&text);
}

int wr_report_xml(const struct wr_snapshot *snapshot, wr_text_sink sink, void *context) {
  struct wr_text text;
  wr_text_begin(&text, sink, context);
  wr_text_string(&text, "<malloc version=\"1\">\n<heap nr=\"0\">\n<sizes>\n");
  for (unsigned i = 0; i < WR_CLASSES; i++) {
    const weir_class_stats_t *class = &snapshot->classes[i];
    if (class->slabs == 0)
      continue;
    wr_text_string(&text, "  <size from=\"");
    wr_text_number(&text, i == 0 || i == WR_SIZECLASS_ALIGNED ? 1 : wr_sizeclass_block(i - 1) + 1);
    wr_text_string(&text, "\" to=\"");
    wr_text_number(&text, class->block);
    wr_text_string(&text, "\" total=\"");
    wr_text_number(&text, class->free * class->block);
    wr_text_string(&text, "\" count=\"");
    wr_text_number(&text, class->free);
    wr_text_string(&text, "\"/>\n");
  }
  wr_text_string(&text, "</sizes>\n");
  for (unsigned i = 0; i < LINES; i++) {
    wr_text_string(&text, "<weir name=\"");
    wr_text_string(&text, lines[i].name);
    wr_text_string(&text, "\" value=\"");
    wr_text_number(&text, value_of(snapshot, &lines[i]));
    wr_text_string(&text, "\"/>\n");
  }
  wr_text_string(&text, "<system type=\"current\" size=\"");
  wr_text_number(&text, snapshot->stats.committed);
  wr_text_string(&text, "\"/>\n<system type=\"max\" size=\"");
  wr_text_number(&text, snapshot->stats.peak_committed);
  wr_text_string(&text, "\"/>\n<aspace type=\"total\" size=\"");
  wr_text_number(&text, snapshot->stats.reserved);
  wr_text_string(&text, "\"/>\n</heap>\n</malloc>\n");
  return wr_text_end(&text);
}

int wr_report_snapshot(const struct wr_snapshot *snapshot, int fd, bool json) {
  return (json ? wr_report_json : wr_report_text)(snapshot, wr_os_sink, &fd);
}

int wr_report_arena(struct wr_arena *arena, int fd, bool json) {
  struct wr_snapshot snapshot;
  wr_snapshot_take(arena, &snapshot);
  return wr_report_snapshot(&snapshot, fd, json);
}
