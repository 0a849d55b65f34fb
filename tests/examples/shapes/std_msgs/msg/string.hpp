/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A message as rosidl generates them: its strings take an allocator that the alias fixes.
 */
#ifndef SHAPES_STRING_HPP
#define SHAPES_STRING_HPP

#include <memory>
#include <string>

namespace std_msgs {
namespace msg {

template <class Allocator> struct String_ {
  using ConstSharedPtr = std::shared_ptr<String_ const>;

  std::basic_string<char, std::char_traits<char>,
                    typename std::allocator_traits<Allocator>::template rebind_alloc<char>>
      data;
};
using String = String_<std::allocator<void>>;

} // namespace msg
} // namespace std_msgs

#endif
