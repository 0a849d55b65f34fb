/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way between the two endpoints of a round trip: a stream socket, over loopback TCP or in the
 * file system, on which every message follows its length. The echo listens and the ping connects;
 * they find each other by a file in their folder, which is the socket itself or tells the port.
 * Nothing here allocates.
 */
#ifndef WEIR_BENCH_LINK_H
#define WEIR_BENCH_LINK_H

#include "bench.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

class Link {
public:
  enum Transport { TCP, UNIX };

  /** Wait for the other end, which connects. */
  static Link listen(Transport transport, const char *file) {
    unlink(file);
    int waiting = transport == TCP ? listen_tcp(file) : listen_unix(file);
    int other = accept4(waiting, NULL, NULL, SOCK_CLOEXEC);
    if (other < 0)
      fail("cannot accept a connection");
    close(waiting);
    return Link(other, transport);
  }

  /** Connect to the end that listens; it has a while to begin with that. */
  static Link connect(Transport transport, const char *file) {
    for (int tries = 0; tries < PATIENCE_MS / STEP_MS; tries++) {
      int other = transport == TCP ? connect_tcp(file) : connect_unix(file);
      if (other >= 0)
        return Link(other, transport);
      bench_sleep_ms(STEP_MS);
    }
    bench_stop(1, "nobody listens at %s", file);
  }

  Link(Link &&from) noexcept : socket_(from.socket_) {
    from.socket_ = -1;
  }
  Link(const Link &) = delete;
  Link &operator=(const Link &) = delete;
  ~Link() {
    if (socket_ >= 0)
      close(socket_);
  }

  void send(const void *bytes, uint64_t length) {
    struct iovec parts[2] = {{&length, sizeof length}, {const_cast<void *>(bytes), (size_t)length}};
    struct msghdr message = {};
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    while (message.msg_iovlen > 0) {
      ssize_t sent = sendmsg(socket_, &message, MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR)
        continue;
      if (sent < 0)
        fail("cannot send");
      advance(message, (size_t)sent);
    }
  }

  /** The length of the message that comes next; false when the other end has closed. */
  bool next(uint64_t &length) {
    return read(&length, sizeof length);
  }

  /** The bytes of that message. */
  void receive(void *bytes, uint64_t length) {
    if (!read(bytes, (size_t)length) && length > 0)
      bench_stop(1, "the other end closed in the middle of a message");
  }

private:
  enum { PATIENCE_MS = 20000, STEP_MS = 5 };
  int socket_;

  [[noreturn]] static void fail(const char *what) {
    bench_stop(1, "%s: %s", what, strerror(errno));
  }

  Link(int socket, Transport transport) : socket_(socket) {
    int one = 1;
    if (transport == TCP && setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) != 0)
      fail("TCP_NODELAY");
  }

  static struct sockaddr_in loopback(uint16_t port) {
    struct sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }

  static struct sockaddr_un named(const char *file) {
    struct sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    if (strlen(file) >= sizeof address.sun_path)
      bench_stop(2, "--address: %s is too long for a socket", file);
    strcpy(address.sun_path, file);
    return address;
  }

  /* The kernel chooses a port, so that any number of beds may run at once. */
  static int listen_tcp(const char *file) {
    int made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = loopback(0);
    socklen_t length = sizeof address;
    if (made < 0 || bind(made, (struct sockaddr *)&address, length) != 0 ||
        ::listen(made, 1) != 0 || getsockname(made, (struct sockaddr *)&address, &length) != 0)
      fail("cannot listen on the loopback");
    /* Whole or not at all: the other end may look at any time. */
    char fresh[4096], text[16];
    int digits = snprintf(text, sizeof text, "%u", ntohs(address.sin_port));
    if (snprintf(fresh, sizeof fresh, "%s.new", file) >= (int)sizeof fresh)
      bench_stop(2, "--address: %s is too long", file);
    int out = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (out < 0 || write(out, text, (size_t)digits) != digits || close(out) != 0 ||
        rename(fresh, file) != 0)
      fail(file);
    return made;
  }

  static int listen_unix(const char *file) {
    int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un address = named(file);
    if (made < 0 || bind(made, (struct sockaddr *)&address, sizeof address) != 0 ||
        ::listen(made, 1) != 0)
      fail(file);
    return made;
  }

  static int connected(int family, const struct sockaddr *address, socklen_t length) {
    int made = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (made < 0)
      fail("cannot make a socket");
    if (::connect(made, address, length) == 0)
      return made;
    close(made);
    return -1;
  }

  static int connect_tcp(const char *file) {
    char text[16] = "";
    int in = open(file, O_RDONLY | O_CLOEXEC);
    if (in < 0)
      return -1;
    ssize_t digits = ::read(in, text, sizeof text - 1);
    close(in);
    struct sockaddr_in address = loopback(digits > 0 ? (uint16_t)atoi(text) : 0);
    return connected(AF_INET, (struct sockaddr *)&address, sizeof address);
  }

  static int connect_unix(const char *file) {
    struct sockaddr_un address = named(file);
    return connected(AF_UNIX, (struct sockaddr *)&address, sizeof address);
  }

  static void advance(struct msghdr &message, size_t sent) {
    while (message.msg_iovlen > 0 && sent >= message.msg_iov->iov_len) {
      sent -= message.msg_iov->iov_len;
      message.msg_iov++;
      message.msg_iovlen--;
    }
    if (message.msg_iovlen > 0) {
      message.msg_iov->iov_base = (char *)message.msg_iov->iov_base + sent;
      message.msg_iov->iov_len -= sent;
    }
  }

  /* False at an end before the first byte. */
  bool read(void *bytes, size_t length) {
    for (size_t at = 0; at < length;) {
      ssize_t got = recv(socket_, (char *)bytes + at, length - at, MSG_WAITALL);
      if (got < 0 && errno == EINTR)
        continue;
      if (got < 0)
        fail("cannot receive");
      if (got == 0 && at == 0)
        return false;
      if (got == 0)
        bench_stop(1, "the other end closed in the middle of a message");
      at += (size_t)got;
    }
    return true;
  }
};

#endif
