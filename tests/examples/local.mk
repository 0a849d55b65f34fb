# SPDX-License-Identifier: Apache-2.0
# The examples and what doc/ros.md says. consumers.sh is run by make installcheck (tests/api).

if REPLACE
TESTS += tests/examples/examples.sh tests/examples/ros.sh
endif
EXTRA_DIST += \
  tests/examples/CMakeLists.txt \
  tests/examples/examples.sh \
  tests/examples/ros.py \
  tests/examples/ros.sh \
  tests/examples/shapes/rclc/executor.h \
  tests/examples/shapes/rclc/rclc.h \
  tests/examples/shapes/rclcpp/rclcpp.hpp \
  tests/examples/shapes/rclcpp/strategies/allocator_memory_strategy.hpp \
  tests/examples/shapes/std_msgs/msg/string.hpp
