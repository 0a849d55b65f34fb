/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text without stdio and without allocation: a fixed buffer that is handed to a sink when it is
 * full. Used where the allocator itself must not be called.
 */
#ifndef WR_TEXT_H
#define WR_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Takes `length` bytes and returns 0, or an errno value and then is not called again. */
typedef int (*wr_text_sink)(void *context, const char *bytes, size_t length);

struct wr_text {
  wr_text_sink sink; /* NULL: what does not fit in the buffer is dropped */
  void *context;
  int error; /* the sink's first errno value, or 0 */
  size_t used;
  char buffer[512];
};

void wr_text_begin(struct wr_text *text, wr_text_sink sink, void *context);
void wr_text_string(struct wr_text *text, const char *string);
void wr_text_bytes(struct wr_text *text, const char *bytes, size_t length);
void wr_text_number(struct wr_text *text, uint64_t number);
void wr_text_hex(struct wr_text *text, uintptr_t number);
/* The string or number, padded with blanks to `width` bytes: on the right, or on the left. */
void wr_text_left(struct wr_text *text, const char *string, size_t width);
void wr_text_right(struct wr_text *text, uint64_t number, size_t width);
/* A size with the largest of the suffixes K, M, G that loses nothing; SIZE_MAX is "unlimited". */
void wr_text_size(struct wr_text *text, size_t size);
/* How many bytes the character of UTF-8 that `string` begins with has; 0 if it begins with none
 * (the Unicode Standard, table 3-7), with a control character, or is empty. */
size_t wr_text_character(const char *string);
/* A string as the inside of a JSON string: quotes, backslashes and control bytes escaped. */
void wr_text_json(struct wr_text *text, const char *string);
/* Hands what is left to the sink; returns text->error. */
int wr_text_end(struct wr_text *text);

/* Reads a size: digits, then nothing or one of k K m M g G, or "unlimited". Returns whether the
 * whole string was one that fits in size_t; *size is untouched otherwise. */
bool wr_text_parse_size(const char *string, size_t *size);

#endif
