/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What rmw_zenoh does with a message, as far as memory is concerned, with Fast CDR as it uses it.
 *
 * Publishing takes a buffer of the serialised size, serialises into it, sends it and frees it. A
 * message that comes in is one block, the payload, which the transport fills. Taking it makes a
 * message whose sequence is fresh, and frees the payload. Between the two lies what differs from
 * release to release:
 *
 *   in-place  deserialises the payload where it lies (kilted and before);
 *   wide      copies it into a buffer of four times the size and 64 KiB, of which no more is ever
 *             touched than the message has, and deserialises that (rolling);
 *   exact     the same with a buffer of the payload's size, which looks like the better code.
 */
#ifndef WEIR_BENCH_MIDDLEWARE_H
#define WEIR_BENCH_MIDDLEWARE_H

#include "link.h"

#include <fastcdr/Cdr.h>
#include <fastcdr/FastBuffer.h>
#include <fastcdr/exceptions/Exception.h>

#include <memory>
#include <vector>

/* A stamped byte array. */
struct Message {
  int32_t sec = 0;
  uint32_t nanosec = 0;
  uint32_t number = 0;
  std::vector<uint8_t> data;
};

class Middleware {
public:
  enum Buffer { IN_PLACE, WIDE, EXACT };

  Middleware(Link &&link, Buffer buffer) : link_(std::move(link)), buffer_(buffer) {}

  void publish(const Message &message) {
    /* The encapsulation, three numbers, and the sequence with its length. */
    Block serialised = take_block(5 * sizeof(uint32_t) + message.data.size());
    eprosima::fastcdr::FastBuffer fast(serialised.get(),
                                       5 * sizeof(uint32_t) + message.data.size());
    eprosima::fastcdr::Cdr cdr(fast, eprosima::fastcdr::Cdr::DEFAULT_ENDIAN,
                               eprosima::fastcdr::Cdr::DDS_CDR);
    try {
      cdr.serialize_encapsulation();
      cdr << message.sec << message.nanosec << message.number << message.data;
    } catch (const eprosima::fastcdr::exception::Exception &error) {
      bench_stop(1, "cannot serialise: %s", error.what());
    }
    link_.send(serialised.get(), cdr.getSerializedDataLength());
  }

  /** Wait for the next message; false when the other end has closed. */
  bool take(Message &message) {
    uint64_t length;
    if (!link_.next(length))
      return false;
    Block payload = take_block((size_t)length);
    link_.receive(payload.get(), length);
    if (buffer_ == IN_PLACE) {
      deserialise(payload.get(), (size_t)length, message);
      return true;
    }
    Block copy = take_block(buffer_ == WIDE ? (size_t)length * 4 + 65536 : (size_t)length);
    memcpy(copy.get(), payload.get(), (size_t)length);
    deserialise(copy.get(), (size_t)length, message);
    return true;
  }

private:
  struct Free {
    void operator()(char *block) const {
      free(block);
    }
  };
  using Block = std::unique_ptr<char, Free>;

  Link link_;
  Buffer buffer_;

  static Block take_block(size_t size) {
    return Block((char *)bench_take(size));
  }

  static void deserialise(char *bytes, size_t length, Message &message) {
    eprosima::fastcdr::FastBuffer fast(bytes, length);
    eprosima::fastcdr::Cdr cdr(fast, eprosima::fastcdr::Cdr::DEFAULT_ENDIAN,
                               eprosima::fastcdr::Cdr::DDS_CDR);
    try {
      cdr.read_encapsulation();
      cdr >> message.sec >> message.nanosec >> message.number >> message.data;
    } catch (const eprosima::fastcdr::exception::Exception &error) {
      bench_stop(1, "cannot deserialise: %s", error.what());
    }
  }
};

#endif
