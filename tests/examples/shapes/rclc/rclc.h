/* SPDX-License-Identifier: Apache-2.0 */
/*
 * As much of rclc's interface as the code in doc/ros.md uses, for compiling that where rclc is not.
 */
#ifndef SHAPES_RCLC_H
#define SHAPES_RCLC_H

#include <rcutils/allocator.h>

typedef int rcl_ret_t;
#define RCL_RET_OK 0
typedef rcutils_allocator_t rcl_allocator_t;
typedef struct {
  void *impl;
} rcl_context_t, rcl_node_t;
typedef struct {
  rcl_context_t context;
} rclc_support_t;

rcl_ret_t rclc_support_init(rclc_support_t *support, int argc, char const *const *argv,
                            rcl_allocator_t *allocator);
rcl_ret_t rclc_node_init_default(rcl_node_t *node, const char *name, const char *space,
                                 rclc_support_t *support);

#endif
