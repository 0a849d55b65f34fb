/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library below bench/roundtrip.py, as rclpy has one: the middleware of the C++ endpoint, and
 * messages that are converted to Python's and from them by copying. A failure ends the process with
 * one line, as it does in the C++ endpoint.
 */
#include "middleware.h"

extern "C" {

/** One end of the way, connected; it lives as long as the process. */
Middleware *roundtrip_open(int listening, int transport, const char *file, int buffer) {
  bench_program = "roundtrip.py";
  Link::Transport way = transport == 0 ? Link::TCP : Link::UNIX;
  return new Middleware(listening ? Link::listen(way, file) : Link::connect(way, file),
                        (Middleware::Buffer)buffer);
}

/** Take a message; NULL when the other end has closed. It is the caller's until it is released. */
Message *roundtrip_take(Middleware *middleware, uint32_t *number, const uint8_t **data,
                        size_t *size) {
  std::unique_ptr<Message> message(new Message);
  if (!middleware->take(*message))
    return NULL;
  *number = message->number;
  *data = message->data.data();
  *size = message->data.size();
  return message.release();
}

void roundtrip_release(Message *message) {
  delete message;
}

/** Make a message of the caller's bytes, publish it and free it. */
void roundtrip_publish(Middleware *middleware, uint32_t number, const uint8_t *data, size_t size) {
  Message message;
  uint64_t now = bench_now();
  message.sec = (int32_t)(now / 1000000000u);
  message.nanosec = (uint32_t)(now % 1000000000u);
  message.number = number;
  message.data.assign(data, data + size);
  middleware->publish(message);
}
}
