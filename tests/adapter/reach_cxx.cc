/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of reach.c that is in C++: a message as rosidl generates it for C++, as a library of its
 * own, so that it has a name among those that allocate.
 */
#include <utility>

#include "reach_msgs/msg/sample.hpp"

extern "C" void reach_cxx(void (*begin)(void), void (*made)(const char *));

void reach_cxx(void (*begin)(void), void (*made)(const char *)) {
  begin();
  {
    reach_msgs::msg::Sample message;
    message.frame = "a frame of a name that is long enough";
    message.data.resize(1 << 20);
    reach_msgs::msg::Sample copy(message);
    made("message in C++");
  }
}
