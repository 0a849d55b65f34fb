/* SPDX-License-Identifier: Apache-2.0 */
/*
 * As much of rclcpp's interface as the code in doc/ros.md uses, with what it asks of an allocator:
 * that its elements are void, that it can be copied into one of other elements, and that it can be
 * called through rcutils' structure, by rclcpp's own way of doing that.
 */
#ifndef SHAPES_RCLCPP_HPP
#define SHAPES_RCLCPP_HPP

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>

namespace rclcpp {

/* Bytes are asked for as elements, and given back as one. */
template <typename Allocator> struct Adapter {
  using Traits = typename std::allocator_traits<Allocator>::template rebind_traits<char>;
  typename Traits::allocator_type plain;

  explicit Adapter(const Allocator &allocator) : plain(allocator) {}
  void use() {
    Traits::deallocate(plain, Traits::allocate(plain, 100), 1);
  }
};

template <typename Allocator> struct Options {
  static_assert(std::is_void<typename std::allocator_traits<Allocator>::value_type>::value,
                "the elements of a publisher's or subscription's allocator must be void");
  std::shared_ptr<Allocator> allocator;
};
template <typename Allocator> struct PublisherOptionsWithAllocator : Options<Allocator> {};
template <typename Allocator> struct SubscriptionOptionsWithAllocator : Options<Allocator> {};

namespace message_memory_strategy {
template <typename Message, typename Allocator> class MessageMemoryStrategy {
public:
  explicit MessageMemoryStrategy(std::shared_ptr<Allocator> allocator) : messages_(*allocator) {}
  std::shared_ptr<Message> borrow_message() {
    return std::allocate_shared<Message>(messages_);
  }

private:
  typename std::allocator_traits<Allocator>::template rebind_alloc<Message> messages_;
};
} // namespace message_memory_strategy

class Node {
public:
  explicit Node(const std::string &) {}

  template <typename Message, typename Allocator>
  std::shared_ptr<Message> create_publisher(const std::string &, std::size_t,
                                            PublisherOptionsWithAllocator<Allocator> options) {
    Adapter<Allocator>(*options.allocator).use();
    return nullptr;
  }

  template <typename Message, typename Callback, typename Allocator>
  std::shared_ptr<Message> create_subscription(
      const std::string &, std::size_t, Callback callback,
      SubscriptionOptionsWithAllocator<Allocator> options,
      std::shared_ptr<message_memory_strategy::MessageMemoryStrategy<Message, Allocator>>
          strategy) {
    Adapter<Allocator>(*options.allocator).use();
    std::function<void(typename Message::ConstSharedPtr)> received = callback;
    received(strategy->borrow_message());
    return nullptr;
  }
};

namespace memory_strategy {
class MemoryStrategy {
public:
  virtual ~MemoryStrategy() = default;
};
} // namespace memory_strategy

struct ExecutorOptions {
  std::shared_ptr<memory_strategy::MemoryStrategy> memory_strategy;
};

namespace executors {
class SingleThreadedExecutor {
public:
  explicit SingleThreadedExecutor(const ExecutorOptions &options) : options_(options) {}
  void add_node(std::shared_ptr<Node>) {}
  void spin() {}

private:
  ExecutorOptions options_;
};
} // namespace executors

} // namespace rclcpp

#endif
