/* SPDX-License-Identifier: Apache-2.0 */
/* Text without a C library: a bounded buffer to write into, numbers both ways, and the memory functions that the compiler
   itself may call. Rule: a buffer that is full drops what does not fit, and never writes beyond its end. */

#ifndef HOLDFAST_TEXT_H
#define HOLDFAST_TEXT_H

#include "sys.h"

void *memset(void *to, int byte, u64 count) {
  for (char *at = to; count > 0; count--) *at++ = (char)byte;
  return to;
}

void *memcpy(void *to, const void *from, u64 count) {
  const char *source = from;
  for (char *at = to; count > 0; count--) *at++ = *source++;
  return to;
}

static u64 length_of(const char *text) {
  u64 length = 0;
  while (text[length] != 0) length++;
  return length;
}

/* What follows the prefix, or 0 when the text does not begin with it. */
static const char *after(const char *text, const char *prefix) {
  while (*prefix != 0) {
    if (*text++ != *prefix++) return 0;
  }
  return text;
}

struct text { u64 length; char bytes[4096]; };

static void put(struct text *to, const char *bytes, u64 count) {
  for (u64 i = 0; i < count && to->length < sizeof to->bytes - 1; i++) to->bytes[to->length++] = bytes[i];
  to->bytes[to->length] = 0;
}

static void put_text(struct text *to, const char *text) { put(to, text, length_of(text)); }

static void put_number(struct text *to, u64 number) {
  char digits[20];
  int at = 20;
  do digits[--at] = (char)('0' + number % 10); while ((number /= 10) > 0);
  put(to, digits + at, (u64)(20 - at));
}

static void put_field(struct text *to, const char *name, u64 number) {
  put_text(to, ",\"");
  put_text(to, name);
  put_text(to, "\":");
  put_number(to, number);
}

static void put_claim(struct text *to, const char *name, int is_true) {
  put_text(to, ",\"");
  put_text(to, name);
  put_text(to, is_true ? "\":true" : "\":false");
}

static void put_string(struct text *to, const char *name, const char *value) {
  put_text(to, ",\"");
  put_text(to, name);
  put_text(to, "\":\"");
  for (; *value != 0; value++) {
    if (*value == '"' || *value == '\\') put_text(to, "\\");
    put(to, value, 1);
  }
  put_text(to, "\"");
}

/* A decimal number that is the whole text; 0 on success, -EINVAL when it is none or does not fit in 63 bits. */
static long number_of(const char *text, u64 *number) {
  u64 value = 0;
  if (*text == 0) return -EINVAL;
  for (; *text != 0; text++) {
    if (*text < '0' || *text > '9' || value > 900000000000000000UL) return -EINVAL;
    value = value * 10 + (u64)(*text - '0');
  }
  *number = value;
  return 0;
}

#endif
