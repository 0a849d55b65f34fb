/* SPDX-License-Identifier: Apache-2.0 */
/*
 * As much of rclcpp's strategy for an executor's memory as the code in doc/ros.md uses.
 */
#ifndef SHAPES_ALLOCATOR_MEMORY_STRATEGY_HPP
#define SHAPES_ALLOCATOR_MEMORY_STRATEGY_HPP

#include <rclcpp/rclcpp.hpp>
#include <vector>

namespace rclcpp {
namespace memory_strategies {
namespace allocator_memory_strategy {

template <typename Allocator>
class AllocatorMemoryStrategy : public memory_strategy::MemoryStrategy {
public:
  explicit AllocatorMemoryStrategy(std::shared_ptr<Allocator> allocator) : handles_(*allocator) {
    handles_.resize(10);
  }

private:
  using Handles = typename std::allocator_traits<Allocator>::template rebind_alloc<void *>;
  std::vector<void *, Handles> handles_;
};

} // namespace allocator_memory_strategy
} // namespace memory_strategies
} // namespace rclcpp

#endif
