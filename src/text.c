/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text without stdio: see text.h. No lock: a wr_text belongs to the function that declared it.
 */
#include "text.h"

#include <string.h>

void wr_text_begin(struct wr_text *text, wr_text_sink sink, void *context) {
  text->sink = sink;
  text->context = context;
  text->error = 0;
  text->used = 0;
}

static void flush(struct wr_text *text) {
  if (text->sink != NULL && text->error == 0 && text->used > 0)
    text->error = text->sink(text->context, text->buffer, text->used);
  if (text->sink != NULL)
    text->used = 0;
}

void wr_text_bytes(struct wr_text *text, const char *bytes, size_t length) {
  while (length > 0) {
    size_t room = sizeof text->buffer - text->used;
    size_t part = length < room ? length : room;
    memcpy(text->buffer + text->used, bytes, part);
    text->used += part;
    bytes += part;
    length -= part;
    if (length > 0) {
      flush(text);
      if (text->used == sizeof text->buffer)
        return;
    }
  }
}

void wr_text_string(struct wr_text *text, const char *string) {
  wr_text_bytes(text, string, strlen(string));
}

/* Writes the digits at the end of a buffer and returns the first of them. */
static char *digits(char *end, uint64_t number, unsigned base) {
  do {
    *--end = "0123456789abcdef"[number % base];
    number /= base;
  } while (number != 0);
  return end;
}

void wr_text_number(struct wr_text *text, uint64_t number) {
  wr_text_right(text, number, 0);
}

void wr_text_hex(struct wr_text *text, uintptr_t number) {
  char buffer[2 * sizeof number];
  char *end = buffer + sizeof buffer;
  char *first = digits(end, number, 16);
  wr_text_string(text, "0x");
  wr_text_bytes(text, first, (size_t)(end - first));
}

static void pad(struct wr_text *text, size_t length, size_t width) {
  for (; length < width; length++)
    wr_text_bytes(text, " ", 1);
}

void wr_text_left(struct wr_text *text, const char *string, size_t width) {
  wr_text_string(text, string);
  pad(text, strlen(string), width);
}

void wr_text_right(struct wr_text *text, uint64_t number, size_t width) {
  char buffer[20];
  char *end = buffer + sizeof buffer;
  char *first = digits(end, number, 10);
  pad(text, (size_t)(end - first), width);
  wr_text_bytes(text, first, (size_t)(end - first));
}

void wr_text_size(struct wr_text *text, size_t size) {
  static const char suffix[] = {'G', 'M', 'K'};
  if (size == SIZE_MAX) {
    wr_text_string(text, "unlimited");
    return;
  }
  for (unsigned i = 0; i < sizeof suffix; i++) {
    unsigned shift = 30 - 10 * i;
    if (size != 0 && (size & (((size_t)1 << shift) - 1)) == 0) {
      wr_text_number(text, size >> shift);
      wr_text_bytes(text, &suffix[i], 1);
      return;
    }
  }
  wr_text_number(text, size);
}

size_t wr_text_character(const char *string) {
  const unsigned char *byte = (const unsigned char *)string;
  unsigned char first = byte[0], least = 0x80, most = 0xbf;
  size_t length = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  if (first < 0x80)
    return first >= 0x20 && first != 0x7f;
  if (first < 0xc2 || first > 0xf4)
    return 0;
  /* The second byte rules out what is longer than need be, surrogates, and what is above the last
   * character. */
  if (first == 0xe0)
    least = 0xa0;
  else if (first == 0xf0)
    least = 0x90;
  else if (first == 0xed)
    most = 0x9f;
  else if (first == 0xf4)
    most = 0x8f;
  if (byte[1] < least || byte[1] > most)
    return 0;
  for (size_t i = 2; i < length; i++)
    if ((byte[i] & 0xc0) != 0x80)
      return 0;
  return length;
}

void wr_text_json(struct wr_text *text, const char *string) {
  for (; *string != '\0'; string++) {
    unsigned char c = (unsigned char)*string;
    if (c == '"' || c == '\\') {
      wr_text_bytes(text, "\\", 1);
      wr_text_bytes(text, string, 1);
    } else if (c < 0x20) {
      char escape[] = {'\\', 'u', '0', '0', "0123456789abcdef"[c >> 4], "0123456789abcdef"[c & 15]};
      wr_text_bytes(text, escape, sizeof escape);
    } else {
      wr_text_bytes(text, string, 1);
    }
  }
}

int wr_text_end(struct wr_text *text) {
  flush(text);
  return text->error;
}

static bool suffix_shift(char suffix, unsigned *shift) {
  switch (suffix) {
  case '\0':
    *shift = 0;
    return true;
  case 'k':
  case 'K':
    *shift = 10;
    return true;
  case 'm':
  case 'M':
    *shift = 20;
    return true;
  case 'g':
  case 'G':
    *shift = 30;
    return true;
  default:
    return false;
  }
}

bool wr_text_parse_size(const char *string, size_t *size) {
  size_t number = 0;
  unsigned shift;
  if (strcmp(string, "unlimited") == 0) {
    *size = SIZE_MAX;
    return true;
  }
  if (*string < '0' || *string > '9')
    return false;
  for (; *string >= '0' && *string <= '9'; string++) {
    size_t digit = (size_t)(*string - '0');
    if (__builtin_mul_overflow(number, (size_t)10, &number) ||
        __builtin_add_overflow(number, digit, &number))
      return false;
  }
  if (!suffix_shift(*string, &shift) || (shift != 0 && string[1] != '\0'))
    return false;
  if (number > SIZE_MAX >> shift)
    return false;
  *size = number << shift;
  return true;
}
