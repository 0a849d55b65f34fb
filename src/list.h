/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Doubly linked lists whose links lie inside the members. A list is valid when it is zero. The
 * lock that guards a list is its owner's business.
 */
#ifndef WR_LIST_H
#define WR_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "attr.h"

struct wr_link {
  struct wr_link *newer; /* towards the front; NULL at the front */
  struct wr_link *older; /* towards the back; NULL at the back */
};

struct wr_list {
  struct wr_link *front; /* what was added last at the front */
  struct wr_link *back;
};

#define WR_LIST_MEMBER(link, type, field) ((type *)(void *)((char *)(link)-offsetof(type, field)))

WR_INLINE bool wr_list_is_empty(const struct wr_list *list) {
  return list->front == NULL;
}

WR_INLINE void wr_list_add_front(struct wr_list *list, struct wr_link *link) {
  link->newer = NULL;
  link->older = list->front;
  if (list->front != NULL)
    list->front->newer = link;
  else
    list->back = link;
  list->front = link;
}

WR_INLINE void wr_list_add_back(struct wr_list *list, struct wr_link *link) {
  link->older = NULL;
  link->newer = list->back;
  if (list->back != NULL)
    list->back->older = link;
  else
    list->front = link;
  list->back = link;
}

/* Adds a link as the first of all, or the last. */
WR_INLINE void wr_list_add(struct wr_list *list, struct wr_link *link, bool last) {
  if (last)
    wr_list_add_back(list, link);
  else
    wr_list_add_front(list, link);
}

/* Adds a link behind `before`, a member; in front, if that is NULL. */
WR_INLINE void wr_list_add_behind(struct wr_list *list, struct wr_link *before,
                                  struct wr_link *link) {
  struct wr_link *after = before != NULL ? before->older : list->front;
  link->newer = before;
  link->older = after;
  if (before != NULL)
    before->older = link;
  else
    list->front = link;
  if (after != NULL)
    after->newer = link;
  else
    list->back = link;
}

WR_INLINE void wr_list_remove(struct wr_list *list, struct wr_link *link) {
  if (link->newer != NULL)
    link->newer->older = link->older;
  else
    list->front = link->older;
  if (link->older != NULL)
    link->older->newer = link->newer;
  else
    list->back = link->newer;
}

/* Moves every member of `tail` behind the members of `list`, in order; `tail` is empty after. */
WR_INLINE void wr_list_append(struct wr_list *list, struct wr_list *tail) {
  if (tail->front == NULL)
    return;
  if (list->back != NULL) {
    list->back->older = tail->front;
    tail->front->newer = list->back;
  } else {
    list->front = tail->front;
  }
  list->back = tail->back;
  tail->front = tail->back = NULL;
}

#endif
