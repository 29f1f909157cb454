/* Sends one request again and again over kept connections and tells what came back, as one line of JSON.
 *
 *   load PORT FILE CONNECTIONS MILLISECONDS REQUESTS MARKS SPREAD
 *
 * FILE holds the request as it goes over the wire; ######## in it becomes a running number, so that no two are the
 * same, and a run of ~ is filled with other words each time. It ends after MILLISECONDS or REQUESTS, whichever is not 0; what is under way then is waited for. A good answer
 * has status 200 and MARKS marks @@<nanoseconds>; in its body; a mark other than @@0; says when it was sent.
 * Connections begin SPREAD microseconds after each other. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "words.h"

enum { EVENTS = 512, HEAD_ROOM = 16384, PATIENCE_S = 60 };

typedef enum { IN_HEAD, IN_LENGTH, IN_CHUNK_SIZE, IN_CHUNK, AFTER_CHUNK, IN_TRAILER, UNTIL_CLOSE } Stage;

typedef struct {
  uint32_t *values; /* tenths of a microsecond */
  size_t size, room;
} Samples;

typedef struct {
  int fd, status, is_asking, ends, line, ats, has_body;
  Stage stage;
  size_t sent, head_size;
  unsigned long long left;
  long long asked, mark;
  int marks;
  char head[HEAD_ROOM + 1];
} Connection;

static char *request, *number, *words;
static size_t request_size, words_size;
static struct sockaddr_in address = {.sin_family = AF_INET};
static int poller, expected_marks, running;
static long long deadline, last_seen;
static unsigned long requests_left, asked, done, errors, reconnects;
static Samples first_bytes, chunk_delays;
static char example[160];

static long long now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void note(Samples *samples, long long nanoseconds) {
  if (samples->size == samples->room) {
    samples->room = samples->room ? samples->room * 2 : 65536;
    samples->values = realloc(samples->values, samples->room * sizeof *samples->values);
    if (!samples->values) abort();
  }
  samples->values[samples->size++] = nanoseconds < 0 ? 0 : (uint32_t)(nanoseconds / 100);
}

static int ascending(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

/* Milliseconds. The samples are sorted. */
static double quantile(const Samples *samples, double share) {
  return samples->size ? samples->values[(size_t)((double)(samples->size - 1) * share)] / 1e4 : 0;
}

static void dial(Connection *c) {
  int one = 1;
  c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&address, sizeof address)) {
    perror("connect");
    exit(1);
  }
  setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
  epoll_ctl(poller, EPOLL_CTL_ADD, c->fd, &event);
}

static void redial(Connection *c) {
  close(c->fd);
  dial(c);
  reconnects++;
}

/* Small requests fit a socket's buffer; of large ones the rest is written without waiting for others. */
static void ask(Connection *c) {
  if (deadline ? now() >= deadline : !requests_left) {
    c->is_asking = 0;
    running--;
    return;
  }
  if (!deadline) requests_left--;
  c->is_asking = 1;
  c->stage = IN_HEAD;
  c->head_size = 0;
  c->marks = c->ats = c->line = c->ends = c->has_body = 0;
  c->mark = -1;
  if (number) {
    char digits[9];
    snprintf(digits, sizeof digits, "%08lu", ++asked % 100000000);
    memcpy(number, digits, 8);
  }
  if (words) fill_with_words(words, words_size);
  c->asked = now();
  for (c->sent = 0; c->sent < request_size;) {
    ssize_t n = send(c->fd, request + c->sent, request_size - c->sent, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      if (c->sent) break;
      redial(c); /* closed while it was idle */
      continue;
    }
    c->sent += (size_t)n;
  }
}

static void finish(Connection *c, int is_good) {
  if (is_good && c->status == 200 && c->marks == expected_marks) {
    done++;
  } else {
    if (!errors++)
      snprintf(example, sizeof example, "status %d, %d of %d marks%s", c->status, c->marks, expected_marks,
               is_good ? "" : ", cut off");
  }
  if (!is_good || c->ends) redial(c);
  ask(c);
}

static void read_body(Connection *c, const char *bytes, size_t size) {
  if (!c->has_body && size) {
    c->has_body = 1;
    note(&first_bytes, now() - c->asked);
  }
  const char *end = bytes + size;
  while (bytes < end) {
    if (c->mark >= 0) {
      if (*bytes >= '0' && *bytes <= '9') {
        c->mark = c->mark * 10 + (*bytes - '0');
      } else {
        if (c->mark) note(&chunk_delays, now() - c->mark);
        c->marks++;
        c->mark = -1;
      }
    } else if (*bytes == '@') {
      if (++c->ats == 2) c->mark = c->ats = 0;
    } else {
      c->ats = 0;
      const char *next = memchr(bytes, '@', (size_t)(end - bytes));
      if (!next) return;
      bytes = next - 1;
    }
    bytes++;
  }
}

static void read_head(Connection *c) {
  c->head[c->head_size] = 0;
  c->status = atoi(c->head + 9);
  c->ends = strcasestr(c->head, "\nconnection: close") != NULL;
  char *length = strcasestr(c->head, "\ncontent-length:");
  if (strcasestr(c->head, "\ntransfer-encoding: chunked")) {
    c->stage = IN_CHUNK_SIZE;
    c->left = 0;
  } else if (length) {
    c->stage = IN_LENGTH;
    c->left = strtoull(length + 16, NULL, 10);
  } else {
    c->stage = UNTIL_CLOSE;
  }
}

static int hex(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c |= 0x20;
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* One byte outside of a body. True: the answer is complete. */
static int read_frame(Connection *c, char byte) {
  switch (c->stage) {
    case IN_HEAD:
      if (c->head_size < HEAD_ROOM) c->head[c->head_size++] = byte;
      if (byte == '\n' && c->head_size >= 4 && !memcmp(c->head + c->head_size - 4, "\r\n\r\n", 4)) read_head(c);
      return c->stage == IN_LENGTH && !c->left;
    case IN_CHUNK_SIZE:
      if (hex(byte) >= 0) c->left = c->left * 16 + (unsigned)hex(byte);
      if (byte == '\n') c->stage = c->left ? IN_CHUNK : IN_TRAILER;
      return 0;
    case AFTER_CHUNK:
      if (byte == '\n') c->stage = IN_CHUNK_SIZE;
      return 0;
    default:
      if (byte == '\n') return !c->line || (c->line = 0);
      if (byte != '\r') c->line = 1;
      return 0;
  }
}

static void read_answer(Connection *c, const char *bytes, size_t size) {
  for (size_t at = 0; at < size;) {
    if (!c->is_asking) return;
    if (c->stage == IN_LENGTH || c->stage == IN_CHUNK || c->stage == UNTIL_CLOSE) {
      size_t part = size - at;
      if (c->stage != UNTIL_CLOSE && part > c->left) part = (size_t)c->left;
      read_body(c, bytes + at, part);
      at += part;
      if (c->stage == UNTIL_CLOSE) continue;
      c->left -= part;
      if (c->left) continue;
      if (c->stage == IN_LENGTH) {
        finish(c, 1);
      } else {
        c->stage = AFTER_CHUNK;
      }
    } else if (read_frame(c, bytes[at++])) {
      finish(c, 1);
    }
  }
}

static void receive(Connection *c) {
  static char bytes[1 << 18];
  ssize_t n = recv(c->fd, bytes, sizeof bytes, MSG_DONTWAIT);
  if (n > 0) {
    read_answer(c, bytes, (size_t)n);
  } else if (n == 0 || errno != EAGAIN) {
    if (!c->is_asking) {
      epoll_ctl(poller, EPOLL_CTL_DEL, c->fd, NULL);
    } else if (c->stage == UNTIL_CLOSE) {
      c->ends = 1;
      finish(c, 1);
    } else {
      finish(c, 0);
    }
  }
}

static void read_request(const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file) {
    perror(path);
    exit(1);
  }
  fseek(file, 0, SEEK_END);
  request_size = (size_t)ftell(file);
  rewind(file);
  request = malloc(request_size);
  if (!request || fread(request, 1, request_size, file) != request_size) exit(1);
  fclose(file);
  number = memmem(request, request_size, "########", 8);
  words = memmem(request, request_size, "~~~~~~~~", 8);
  while (words && words + words_size < request + request_size && words[words_size] == '~') words_size++;
}

static void print_result(double seconds) {
  qsort(first_bytes.values, first_bytes.size, sizeof(uint32_t), ascending);
  qsort(chunk_delays.values, chunk_delays.size, sizeof(uint32_t), ascending);
  printf("{\"requests\":%lu,\"errors\":%lu,\"reconnects\":%lu,\"seconds\":%.4f,\"per_second\":%.1f,"
         "\"first_byte_ms\":%.4f,\"first_byte_p99_ms\":%.4f,\"chunk_ms\":%.4f,\"chunk_p99_ms\":%.4f,"
         "\"example\":\"%s\"}\n",
         done, errors, reconnects, seconds, (double)done / seconds, quantile(&first_bytes, 0.5),
         quantile(&first_bytes, 0.99), quantile(&chunk_delays, 0.5), quantile(&chunk_delays, 0.99), example);
}

int main(int count, char **arguments) {
  if (count != 8) {
    fprintf(stderr, "usage: load PORT FILE CONNECTIONS MILLISECONDS REQUESTS MARKS SPREAD\n");
    return 2;
  }
  address.sin_port = htons((uint16_t)atoi(arguments[1]));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  read_request(arguments[2]);
  int size = atoi(arguments[3]), spread = atoi(arguments[7]);
  long milliseconds = atol(arguments[4]);
  requests_left = strtoul(arguments[5], NULL, 10);
  expected_marks = atoi(arguments[6]);
  poller = epoll_create1(EPOLL_CLOEXEC);
  Connection *connections = calloc((size_t)size, sizeof *connections);
  if (!connections) return 1;
  for (int i = 0; i < size; i++) dial(&connections[i]);
  running = size;
  long long began = now();
  if (milliseconds) deadline = began + milliseconds * 1000000LL;
  last_seen = began;
  int begun = 0;
  struct epoll_event ready[EVENTS];
  while (running > 0) {
    for (; begun < size && now() >= began + (long long)begun * spread * 1000; begun++) ask(&connections[begun]);
    int seen = epoll_wait(poller, ready, EVENTS, begun < size && spread ? 0 : 1000);
    for (int i = 0; i < seen; i++) receive(ready[i].data.ptr);
    if (seen > 0) last_seen = now();
    if (now() - last_seen > PATIENCE_S * 1000000000LL) {
      snprintf(example, sizeof example, "nothing came for %d s", PATIENCE_S);
      errors += (unsigned long)running;
      break;
    }
  }
  print_result((double)(now() - began) / 1e9);
  return 0;
}
