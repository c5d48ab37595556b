/* SPDX-License-Identifier: Apache-2.0 */
/* The two outputs of a job. As files the job writes them itself, and what is there is measured and hashed at its end. As pumps
   (model servers) they pass through the shim into bounded files that rotate. Rule: a pump always empties its pipe: what cannot
   be written is counted and dropped, so a full disk never stalls the child. */

#ifndef HOLDFAST_OUTPUT_H
#define HOLDFAST_OUTPUT_H

#include "params.h"
#include "sha256.h"

enum { PIECE_BYTES = 65536, PIPE_BYTES = 1048576, PIECES_AT_ONCE = 16, LAST_TURNS = 4 };

struct stream {
  const char *name;
  long file;
  long reader; /* files: the same file, for the hash at the end; the job may have put another one in its place */
  long pipe, child_end; /* pumps only; else -1 */
  u64 bytes, dropped, in_file;
  struct sha256 hash;
};

static struct stream outputs[2] = {{.name = "stdout"}, {.name = "stderr"}};
static char piece[PIECE_BYTES];

static long open_stream(struct stream *stream, const struct params *params) {
  stream->pipe = stream->child_end = stream->reader = -1;
  sha256_begin(&stream->hash);
  stream->file = open_file(stream->name, O_WRONLY | O_CREAT | O_EXCL | O_APPEND);
  if (stream->file < 0) return stream->file;
  /* A job of another account opens it again as /dev/stdout. */
  if (!params->is_own_account) S2(SYS_fchmod, stream->file, 0660);
  if (params->is_pump) {
    int ends[2];
    long fault = S2(SYS_pipe2, ends, O_CLOEXEC);
    if (fault < 0) return fault;
    stream->pipe = ends[0];
    stream->child_end = ends[1];
    S3(SYS_fcntl, stream->pipe, F_SETPIPE_SZ, PIPE_BYTES);
    return S3(SYS_fcntl, stream->pipe, F_SETFL, O_NONBLOCK);
  }
  return stream->reader = open_file(stream->name, O_RDONLY | O_NOFOLLOW);
}

/* What the child gets as its descriptor 1 or 2. */
static long child_end_of(const struct stream *stream) {
  return stream->child_end < 0 ? stream->file : stream->child_end;
}

static void close_child_end(struct stream *stream) {
  if (stream->child_end >= 0) S1(SYS_close, stream->child_end);
  stream->child_end = -1;
}

static void put_file_name(struct text *to, const char *name, u64 number) {
  to->length = 0;
  put_text(to, name);
  if (number == 0) return;
  put_text(to, ".");
  put_number(to, number);
}

/* name.2 becomes name.3, name becomes name.1, and name begins anew; the oldest is replaced. */
static void rotate(struct stream *stream, const struct params *params) {
  static struct text from, to;
  for (u64 number = params->numbers[PUMP_FILES] - 1; number > 0; number--) {
    put_file_name(&from, stream->name, number - 1);
    put_file_name(&to, stream->name, number);
    S5(SYS_renameat2, AT_FDCWD, from.bytes, AT_FDCWD, to.bytes, 0);
  }
  S1(SYS_close, stream->file);
  stream->file = open_file(stream->name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_APPEND);
  stream->in_file = 0;
}

static void keep(struct stream *stream, const struct params *params, const char *bytes, u64 count) {
  while (count > 0) {
    if (stream->file < 0 || stream->in_file >= params->numbers[PUMP_FILE_BYTES]) rotate(stream, params);
    u64 room = params->numbers[PUMP_FILE_BYTES] - stream->in_file, part = count < room ? count : room;
    long put;
    AGAIN(put, stream->file < 0 ? stream->file : S3(SYS_write, stream->file, bytes, part));
    if (put <= 0) {
      stream->dropped += count;
      return;
    }
    bytes += put, count -= (u64)put, stream->in_file += (u64)put;
  }
}

/* Takes what waits in the pipe, but only so much that the other stream and signals get their turn; whether there was any. */
static int pump(struct stream *stream, const struct params *params) {
  for (int turn = 0; stream->pipe >= 0 && turn < PIECES_AT_ONCE; turn++) {
    long got = read_some(stream->pipe, piece, sizeof piece);
    if (got == 0) S1(SYS_close, stream->pipe), stream->pipe = -1;
    if (got <= 0) return turn > 0;
    stream->bytes += (u64)got;
    sha256_add(&stream->hash, piece, (u64)got);
    keep(stream, params, piece, (u64)got);
  }
  return stream->pipe >= 0;
}

static u64 written_of(const struct stream *stream) {
  return stream->pipe < 0 && stream->reader >= 0 ? size_of(stream->file) : stream->bytes;
}

/* The most that one of the two has written. */
static u64 most_written(void) {
  u64 first = written_of(&outputs[0]), second = written_of(&outputs[1]);
  return first > second ? first : second;
}

/* When nobody writes any more: the rest of the pipe, or the hash of the file, cut at its limit. All of it is made durable. */
static void settle_stream(struct stream *stream, const struct params *params) {
  u64 limit = params->numbers[OUTPUT_BYTES];
  long got;
  /* A few turns empty the largest pipe; a stranger who still holds the other end could fill it for ever. */
  if (stream->reader < 0) for (int turn = 0; turn < LAST_TURNS && pump(stream, params); turn++) {}
  else if (limit > 0 && size_of(stream->file) > limit) S2(SYS_ftruncate, stream->file, limit);
  while (stream->reader >= 0 && (got = read_some(stream->reader, piece, sizeof piece)) > 0) {
    stream->bytes += (u64)got;
    sha256_add(&stream->hash, piece, (u64)got);
  }
  /* The exit file must not claim bytes that a power cut takes away. */
  if (stream->file >= 0 && size_of(stream->file) > 0) S1(SYS_fdatasync, stream->file);
}

static void put_stream(struct text *to, struct stream *stream) {
  put_text(to, ",\"");
  put_text(to, stream->name);
  put_text(to, "Bytes\":");
  put_number(to, stream->bytes);
  put_text(to, ",\"");
  put_text(to, stream->name);
  put_text(to, "Sha256\":\"");
  sha256_end(&stream->hash, to);
  put_text(to, "\"");
  if (stream->dropped == 0) return;
  put_text(to, ",\"");
  put_text(to, stream->name);
  put_text(to, "DroppedBytes\":");
  put_number(to, stream->dropped);
}

#endif
