/* SPDX-License-Identifier: Apache-2.0 */
/*
 * As much of rclc's executor as the code in doc/ros.md uses.
 */
#ifndef SHAPES_RCLC_EXECUTOR_H
#define SHAPES_RCLC_EXECUTOR_H

#include <rclc/rclc.h>

typedef struct {
  void *handles;
} rclc_executor_t;

rcl_ret_t rclc_executor_init(rclc_executor_t *executor, rcl_context_t *context, size_t handles,
                             const rcl_allocator_t *allocator);

#endif
