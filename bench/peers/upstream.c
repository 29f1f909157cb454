/* A provider of openai-chat that is never the bottleneck: one thread, epoll, answers made beforehand.
 *
 * A request whose body has "stream":true gets 200 chunks in one write, or, where its model is bench-paced, 100 chunks,
 * one every 20 ms, each with the time at which it was sent. Any other request gets a whole answer of 1 KB. Marks of the
 * form @@<nanoseconds>; let the load generator count chunks and time them; @@0; is not timed. A GET is told how many
 * requests were answered so far.
 * A request with the words "in varied words" is answered in words that do not repeat, under OpenAI's headers of limits.
 * The port is printed; the end of standard input ends the program. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "words.h"

enum { BURST_CHUNKS = 200, PACED_CHUNKS = 100, PACE_NS = 20000000, CONNECTIONS = 16384, EVENTS = 512 };

typedef struct {
  char *bytes;
  size_t size, room;
} Buffer;

typedef struct {
  int fd;
  Buffer in, out;
  size_t written;
  int chunks_left, is_varied;
  long long due;
} Connection;

static Connection *connections[CONNECTIONS];
static int highest, poller, timer;
static long long answered;
static Buffer whole, burst, varied_whole, varied_burst;
static Buffer message, varied_message, message_burst, varied_message_burst; /* as Anthropic's API says them */
#define STREAM_HEADERS \
  "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nCache-Control: no-cache\r\n" \
  "Transfer-Encoding: chunked\r\n"
#define OPENAI_HEADERS \
  "x-ratelimit-limit-requests: 10000\r\nx-ratelimit-limit-tokens: 2000000\r\n" \
  "x-ratelimit-remaining-requests: 9###\r\nx-ratelimit-remaining-tokens: 19####5\r\n" \
  "x-ratelimit-reset-requests: 8.64s\r\nx-ratelimit-reset-tokens: 1##ms\r\nopenai-processing-ms: 4##\r\n" \
  "openai-version: 2020-10-01\r\nopenai-organization: bench\r\nx-request-id: req_################\r\n"
static const char STREAM_HEAD[] = STREAM_HEADERS "\r\n";
static const char VARIED_STREAM_HEAD[] = STREAM_HEADERS OPENAI_HEADERS "\r\n";
static const char STREAM_END[] = "e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n";

static long long now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void append(Buffer *buffer, const void *bytes, size_t size) {
  if (buffer->size + size > buffer->room) {
    buffer->room = (buffer->size + size) * 2;
    buffer->bytes = realloc(buffer->bytes, buffer->room);
    if (!buffer->bytes) abort();
  }
  memcpy(buffer->bytes + buffer->size, bytes, size);
  buffer->size += size;
}

/* Chunks are numbered: some gateways take a hundred equal ones for a model that has lost its way. */
static void append_chunk(Buffer *buffer, long long stamp, int number, int is_last, const char *word) {
  char event[512], head[16];
  int size = snprintf(
      event, sizeof event,
      "data: {\"id\":\"chatcmpl-bench\",\"object\":\"chat.completion.chunk\",\"created\":1760000000,"
      "\"model\":\"bench\",\"choices\":[{\"index\":0,\"delta\":{%s\"content\":\"%s %03d @@%lld; \"},"
      "\"finish_reason\":%s}]}\n\n",
      is_last ? "" : "\"role\":\"assistant\",", word, number, stamp, is_last ? "\"stop\"" : "null");
  append(buffer, head, (size_t)snprintf(head, sizeof head, "%x\r\n", size));
  append(buffer, event, (size_t)size);
  append(buffer, "\r\n", 2);
}

/* Fills each run of ~ with words and each run of # with digits. */
static void vary(char *bytes, size_t size) {
  char *end = bytes + size;
  for (char *at = bytes; (at = memchr(at, '~', (size_t)(end - at)));) {
    char *run = at;
    while (at < end && *at == '~') at++;
    fill_with_words(run, (size_t)(at - run));
  }
  for (char *at = bytes; (at = memchr(at, '#', (size_t)(end - at)));) *at++ = (char)('0' + draw(10));
}

/* Copies made beforehand, whose gaps are filled for each answer. */
static const char *word(int is_varied) { return is_varied ? "~~~~~~~~" : "word"; }

static void prepare_whole(Buffer *buffer, const char *headers, const char *pattern) {
  char body[2048], text[800], head[1024];
  for (size_t i = 0; i < sizeof text - 1; i++) text[i] = pattern[i % 5];
  text[sizeof text - 1] = 0;
  int size = snprintf(body, sizeof body,
                      "{\"id\":\"chatcmpl-bench\",\"object\":\"chat.completion\",\"created\":1760000000,"
                      "\"model\":\"bench\",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\","
                      "\"content\":\"@@0; %s\"},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":230,"
                      "\"completion_tokens\":160,\"total_tokens\":390}}",
                      text);
  append(buffer, head,
         (size_t)snprintf(head, sizeof head,
                          "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s\r\n", size,
                          headers));
  append(buffer, body, (size_t)size);
}

static void prepare_burst(Buffer *buffer, const char *head, size_t size, int is_varied) {
  append(buffer, head, size);
  for (int i = 1; i <= BURST_CHUNKS; i++) append_chunk(buffer, 0, i, i == BURST_CHUNKS, word(is_varied));
  append(buffer, STREAM_END, sizeof STREAM_END - 1);
}

static void append_event(Buffer *buffer, const char *name, const char *data) {
  char event[1024], head[16];
  int size = snprintf(event, sizeof event, "event: %s\ndata: %s\n\n", name, data);
  append(buffer, head, (size_t)snprintf(head, sizeof head, "%x\r\n", size));
  append(buffer, event, (size_t)size);
  append(buffer, "\r\n", 2);
}

#define MESSAGE \
  "\"id\":\"msg_bench\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"bench\",\"stop_sequence\":null,"

static void prepare_message(Buffer *buffer, const char *pattern) {
  char body[2048], text[800], head[256];
  for (size_t i = 0; i < sizeof text - 1; i++) text[i] = pattern[i % 5];
  text[sizeof text - 1] = 0;
  int size = snprintf(body, sizeof body,
                      "{" MESSAGE "\"content\":[{\"type\":\"text\",\"text\":\"@@0; %s\"}],"
                      "\"stop_reason\":\"end_turn\",\"usage\":{\"input_tokens\":230,\"output_tokens\":160}}",
                      text);
  append(buffer, head,
         (size_t)snprintf(head, sizeof head,
                          "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", size));
  append(buffer, body, (size_t)size);
}

static void prepare_message_burst(Buffer *buffer, int is_varied) {
  char data[512];
  append(buffer, STREAM_HEAD, sizeof STREAM_HEAD - 1);
  append_event(buffer, "message_start",
               "{\"type\":\"message_start\",\"message\":{" MESSAGE "\"content\":[],\"stop_reason\":null,"
               "\"usage\":{\"input_tokens\":230,\"output_tokens\":1}}}");
  append_event(buffer, "content_block_start",
               "{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}");
  for (int i = 1; i <= BURST_CHUNKS; i++) {
    snprintf(data, sizeof data,
             "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\","
             "\"text\":\"%s %03d @@0; \"}}",
             word(is_varied), i);
    append_event(buffer, "content_block_delta", data);
  }
  append_event(buffer, "content_block_stop", "{\"type\":\"content_block_stop\",\"index\":0}");
  append_event(buffer, "message_delta",
               "{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\",\"stop_sequence\":null},"
               "\"usage\":{\"output_tokens\":160}}");
  append_event(buffer, "message_stop", "{\"type\":\"message_stop\"}");
  append(buffer, "0\r\n\r\n", 5);
}

static void prepare_answers(void) {
  prepare_message(&message, "word ");
  prepare_message(&varied_message, "~~~~~");
  prepare_message_burst(&message_burst, 0);
  prepare_message_burst(&varied_message_burst, 1);
  prepare_whole(&whole, "", "word ");
  prepare_whole(&varied_whole, OPENAI_HEADERS, "~~~~~");
  prepare_burst(&burst, STREAM_HEAD, sizeof STREAM_HEAD - 1, 0);
  prepare_burst(&varied_burst, VARIED_STREAM_HEAD, sizeof VARIED_STREAM_HEAD - 1, 1);
}

static void drop(Connection *c) {
  connections[c->fd] = NULL;
  close(c->fd);
  free(c->in.bytes);
  free(c->out.bytes);
  free(c);
}

static void watch(Connection *c, int operation, unsigned events) {
  struct epoll_event event = {.events = events, .data.fd = c->fd};
  epoll_ctl(poller, operation, c->fd, &event);
}

/* False: the connection is gone. */
static int flush(Connection *c) {
  while (c->written < c->out.size) {
    ssize_t n = write(c->fd, c->out.bytes + c->written, c->out.size - c->written);
    if (n < 0 && errno == EAGAIN) {
      watch(c, EPOLL_CTL_MOD, EPOLLIN | EPOLLOUT);
      return 1;
    }
    if (n < 0) return drop(c), 0;
    c->written += (size_t)n;
  }
  c->out.size = c->written = 0;
  return 1;
}

static void set_timer(void) {
  long long first = 0;
  for (int fd = 0; fd <= highest; fd++) {
    Connection *c = connections[fd];
    if (c && c->chunks_left && (!first || c->due < first)) first = c->due;
  }
  struct itimerspec when = {.it_value = {first / 1000000000LL, first % 1000000000LL}};
  timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, NULL);
}

static int send_paced(Connection *c) {
  c->due += PACE_NS;
  c->chunks_left--;
  size_t before = c->out.size;
  append_chunk(&c->out, now(), PACED_CHUNKS - c->chunks_left, !c->chunks_left, word(c->is_varied));
  if (c->is_varied) vary(c->out.bytes + before, c->out.size - before);
  if (!c->chunks_left) append(&c->out, STREAM_END, sizeof STREAM_END - 1);
  return flush(c);
}

static void send_due(void) {
  unsigned long long ticks;
  if (read(timer, &ticks, sizeof ticks) < 0 && errno != EAGAIN) abort();
  for (int fd = 0; fd <= highest; fd++) {
    Connection *c = connections[fd];
    if (c && c->chunks_left && c->due <= now()) send_paced(c);
  }
  set_timer();
}

static int tell_answered(Connection *c) {
  char body[32], told[128];
  int size = snprintf(body, sizeof body, "%lld\n", answered);
  append(&c->out, told,
         (size_t)snprintf(told, sizeof told,
                          "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s", size, body));
  return flush(c);
}

static void append_answer(Connection *c, const char *bytes, size_t size) {
  size_t before = c->out.size;
  append(&c->out, bytes, size);
  if (c->is_varied) vary(c->out.bytes + before, size);
}

static int answer(Connection *c, const char *body, size_t size, int is_message) {
  answered++;
  c->is_varied = memmem(body, size, "in varied words", 15) != NULL;
  int is_stream = memmem(body, size, "\"stream\":true", 13) || memmem(body, size, "\"stream\": true", 14);
  if (is_stream && memmem(body, size, "bench-paced", 11)) {
    c->chunks_left = PACED_CHUNKS;
    c->due = now();
    append_answer(c, c->is_varied ? VARIED_STREAM_HEAD : STREAM_HEAD,
                  (c->is_varied ? sizeof VARIED_STREAM_HEAD : sizeof STREAM_HEAD) - 1);
    if (!send_paced(c)) return 0;
    set_timer();
    return 1;
  }
  const Buffer *ready =
      c->is_varied ? (is_stream ? &varied_burst : &varied_whole) : (is_stream ? &burst : &whole);
  if (is_message) {
    ready = c->is_varied ? (is_stream ? &varied_message_burst : &varied_message)
                         : (is_stream ? &message_burst : &message);
  }
  append_answer(c, ready->bytes, ready->size);
  return flush(c);
}

/* The size of the first request in the buffer, 0 while it is not all there. */
static size_t request_size(Connection *c, size_t *head_size) {
  char *end = c->in.size ? memmem(c->in.bytes, c->in.size, "\r\n\r\n", 4) : NULL;
  if (!end) return 0;
  *head_size = (size_t)(end - c->in.bytes) + 4;
  append(&c->in, "", 1); /* the search functions below want an end */
  c->in.size--;
  char kept = c->in.bytes[*head_size];
  c->in.bytes[*head_size] = 0;
  char *length = strcasestr(c->in.bytes, "\ncontent-length:");
  int is_chunked = strcasestr(c->in.bytes, "\ntransfer-encoding: chunked") != NULL;
  size_t size = length ? (size_t)strtoul(length + 16, NULL, 10) : 0;
  c->in.bytes[*head_size] = kept;
  if (is_chunked) {
    char *last = memmem(c->in.bytes + *head_size, c->in.size - *head_size, "0\r\n\r\n", 5);
    return last ? (size_t)(last - c->in.bytes) + 5 : 0;
  }
  return *head_size + size <= c->in.size ? *head_size + size : 0;
}

static void read_requests(Connection *c) {
  static char bytes[1 << 18];
  for (;;) {
    ssize_t n = read(c->fd, bytes, sizeof bytes);
    if (n < 0 && errno == EAGAIN) break;
    if (n <= 0) return drop(c);
    append(&c->in, bytes, (size_t)n);
    if ((size_t)n < sizeof bytes) break;
  }
  size_t head, size;
  while ((size = request_size(c, &head))) {
    size_t rest = c->in.size - size;
    int is_question = !memcmp(c->in.bytes, "GET ", 4); /* there are at least the four bytes that end the head */
    int is_message = !memcmp(c->in.bytes, "POST /v1/messages", 17);
    if (!(is_question ? tell_answered(c) : answer(c, c->in.bytes + head, size - head, is_message))) return;
    memmove(c->in.bytes, c->in.bytes + size, rest);
    c->in.size = rest;
  }
}

static void accept_all(int listener) {
  int fd, one = 1;
  while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
    if (fd >= CONNECTIONS) {
      close(fd);
      continue;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    Connection *c = calloc(1, sizeof *c);
    if (!c) abort();
    c->fd = fd;
    connections[fd] = c;
    if (fd > highest) highest = fd;
    watch(c, EPOLL_CTL_ADD, EPOLLIN);
  }
}

static int listen_anywhere(void) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof address;
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (bind(fd, (struct sockaddr *)&address, size) || listen(fd, 4096)) {
    perror("listen");
    exit(1);
  }
  getsockname(fd, (struct sockaddr *)&address, &size);
  printf("%d\n", ntohs(address.sin_port));
  fflush(stdout);
  return fd;
}

int main(void) {
  struct rlimit files;
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  signal(SIGPIPE, SIG_IGN);
  prepare_answers();
  poller = epoll_create1(EPOLL_CLOEXEC);
  timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  int listener = listen_anywhere();
  int own[] = {listener, timer, STDIN_FILENO};
  for (int i = 0; i < 3; i++) {
    struct epoll_event event = {.events = EPOLLIN, .data.fd = own[i]};
    epoll_ctl(poller, EPOLL_CTL_ADD, own[i], &event);
  }
  struct epoll_event ready[EVENTS];
  for (;;) {
    int count = epoll_wait(poller, ready, EVENTS, -1);
    for (int i = 0; i < count; i++) {
      int fd = ready[i].data.fd;
      if (fd == STDIN_FILENO) return 0;
      if (fd == listener) {
        accept_all(listener);
      } else if (fd == timer) {
        send_due();
      } else if (connections[fd]) {
        Connection *c = connections[fd];
        if (ready[i].events & EPOLLOUT) {
          watch(c, EPOLL_CTL_MOD, EPOLLIN);
          if (!flush(c)) continue;
        }
        if (ready[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) read_requests(c);
      }
    }
  }
}
