/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Containers of every kind over weir::allocator, copied, moved, swapped and assigned between
 * arenas: what they hold, which arena they use then, whether their elements stayed where they were,
 * and that nothing is left in either arena.
 */
#include "arenas.h"

#include <deque>
#include <forward_list>
#include <list>
#include <map>
#include <set>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace {

template <typename T> using over = weir::allocator<T>;
template <typename T> using vector_of = std::vector<T, over<T>>;
template <typename T> using deque_of = std::deque<T, over<T>>;
template <typename T> using list_of = std::list<T, over<T>>;
template <typename T> using set_of = std::set<T, std::less<T>, over<T>>;
template <typename K, typename V>
using map_of = std::map<K, V, std::less<K>, over<std::pair<const K, V>>>;
template <typename K, typename V>
using multimap_of = std::multimap<K, V, std::less<K>, over<std::pair<const K, V>>>;
template <typename T>
using hash_set_of = std::unordered_set<T, std::hash<T>, std::equal_to<T>, over<T>>;
template <typename K, typename V>
using hash_map_of =
    std::unordered_map<K, V, std::hash<K>, std::equal_to<K>, over<std::pair<const K, V>>>;

static_assert(std::is_nothrow_move_constructible<vector_of<int>>::value, "");
static_assert(std::is_nothrow_move_assignable<vector_of<int>>::value, "");
static_assert(std::is_nothrow_move_assignable<list_of<int>>::value, "");
static_assert(std::is_nothrow_move_assignable<map_of<int, int>>::value, "");
static_assert(std::is_nothrow_move_assignable<arena_string>::value, "");

/* More than a string holds in itself, and several of deque's pieces. */
constexpr int many = 300;
constexpr int few = 90;

template <typename Container> weir_arena_t *arena_of(const Container &container) {
  return container.get_allocator().arena();
}

template <typename Container> const void *place(const Container &container) {
  return &*container.begin();
}

/* One container with `many` elements, another with `few`, and their arenas. */
template <typename Container> struct pair_of {
  Container one, other;

  pair_of(weir_arena_t *first, weir_arena_t *second) : one(first), other(second) {
    fill(one, 0, many);
    fill(other, 0, few);
    ck_assert(holds(one, many) && holds(other, few));
    ck_assert(arena_of(one) == first && arena_of(other) == second);
  }
};

template <typename Container> void check_copies(weir_arena_t *first, weir_arena_t *second) {
  pair_of<Container> both(first, second);
  uint64_t before = live(first);

  Container copy(both.one);
  ck_assert(arena_of(copy) == first && holds(copy, many));
  ck_assert_uint_gt(live(first), before);
  Container elsewhere(both.one, second);
  ck_assert(arena_of(elsewhere) == second && holds(elsewhere, many));
  fill(elsewhere, many, 10);
  ck_assert(holds(elsewhere, many + 10) && holds(both.one, many));

  both.other = both.one;
  ck_assert(arena_of(both.other) == second && holds(both.other, many));
  ck_assert(arena_of(both.one) == first && holds(both.one, many));
  const Container &self = both.one;
  both.one = self;
  ck_assert(arena_of(both.one) == first && holds(both.one, many));
  both.one = Container(second);
  ck_assert(both.one.empty());
}

template <typename Container> void check_moves(weir_arena_t *first, weir_arena_t *second) {
  pair_of<Container> both(first, second);
  const void *at = place(both.one);

  Container moved(std::move(both.one));
  ck_assert(arena_of(moved) == first && holds(moved, many) && place(moved) == at);

  both.other = std::move(moved);
  ck_assert(arena_of(both.other) == first && holds(both.other, many) && place(both.other) == at);
  ck_assert_uint_ge(live(first), many);

  /* With an arena named, elements stay where they are only if it is theirs. */
  Container kept(std::move(both.other), first);
  ck_assert(arena_of(kept) == first && holds(kept, many) && place(kept) == at);
  Container elsewhere(std::move(kept), second);
  ck_assert(arena_of(elsewhere) == second && holds(elsewhere, many));
  ck_assert_int_eq(place(elsewhere) == at, first == second);

  /* What was moved from can be used again. */
  moved = Container(second);
  fill(moved, 0, few);
  ck_assert(arena_of(moved) == second && holds(moved, few));
}

template <typename Container> void check_swaps(weir_arena_t *first, weir_arena_t *second) {
  pair_of<Container> both(first, second);
  const void *one = place(both.one);
  const void *other = place(both.other);
  uint64_t firsts = live(first), seconds = live(second);

  static_assert(noexcept(both.one.swap(both.other)), "");
  both.one.swap(both.other);
  ck_assert(arena_of(both.one) == second && holds(both.one, few) && place(both.one) == other);
  ck_assert(arena_of(both.other) == first && holds(both.other, many) && place(both.other) == one);
  ck_assert_uint_eq(live(first), firsts);
  ck_assert_uint_eq(live(second), seconds);
  std::swap(both.one, both.other);
  ck_assert(arena_of(both.one) == first && holds(both.one, many) && place(both.one) == one);
  fill(both.one, many, 1);
  fill(both.other, few, 1);
  ck_assert(holds(both.one, many + 1) && holds(both.other, few + 1));
}

template <typename Container> void check_all() {
  default_balance balance;
  scratch_arena one, other;
  weir_arena_t *arenas[] = {one, other, nullptr};

  for (weir_arena_t *first : arenas) {
    for (weir_arena_t *second : arenas) {
      check_copies<Container>(first, second);
      check_moves<Container>(first, second);
      check_swaps<Container>(first, second);
      ck_assert_uint_eq(live(one), 0);
      ck_assert_uint_eq(live(other), 0);
    }
  }
}

START_TEST(vectors) {
  check_all<vector_of<int>>();
  check_all<vector_of<record>>();
}
END_TEST

START_TEST(deques) {
  check_all<deque_of<record>>();
}
END_TEST

START_TEST(lists) {
  check_all<list_of<record>>();
}
END_TEST

START_TEST(strings) {
  check_all<arena_string>();
}
END_TEST

START_TEST(maps_and_sets) {
  check_all<map_of<int, record>>();
  check_all<multimap_of<int, record>>();
  check_all<set_of<record>>();
}
END_TEST

START_TEST(hash_maps_and_sets) {
  check_all<hash_map_of<int, record>>();
  check_all<hash_set_of<record>>();
}
END_TEST

/* Short strings lie in the string itself; the arena goes with them all the same. */
START_TEST(short_strings) {
  scratch_arena one, other;
  arena_string left("left", weir::allocator<char>(one));
  arena_string right("right", weir::allocator<char>(other));

  ck_assert_uint_eq(live(one), 0);
  left.swap(right);
  ck_assert(left == "right" && left.get_allocator().arena() == other);
  right = std::move(left);
  ck_assert(right == "right" && right.get_allocator().arena() == other);
  right.append(1000, '.');
  ck_assert_uint_eq(live(one), 0);
  ck_assert_uint_ge(live(other), 1000);
}
END_TEST

/* A forward list has no end to insert at. */
START_TEST(forward_lists) {
  scratch_arena one, other;
  std::forward_list<int, weir::allocator<int>> left({1, 2, 3}, one.get()), right(other.get());

  right = left;
  ck_assert(right == left && right.get_allocator().arena() == other);
  const void *at = &right.front();
  left = std::move(right);
  ck_assert(&left.front() == at && left.get_allocator().arena() == other);
  ck_assert_uint_eq(live(one), 0);
}
END_TEST

/* Containers in containers: each element has the arena it was made with. */
START_TEST(containers_in_containers) {
  default_balance balance;
  scratch_arena one, other;
  map_of<int, vector_of<arena_string>> all(one.get());

  for (int i = 0; i < 50; i++) {
    vector_of<arena_string> texts(one.get());
    for (int j = 0; j < i; j++)
      texts.emplace_back(static_cast<size_t>(10 * j), 'a', weir::allocator<char>(other));
    all.emplace(i, std::move(texts));
  }
  ck_assert_uint_gt(live(one), 50 * 49 / 2 * sizeof(arena_string));
  ck_assert_uint_gt(live(other), 50 * 1000);
  auto copy = all;
  all.clear();
  ck_assert_uint_eq(copy.size(), 50);
  ck_assert(copy.at(49).at(48) == arena_string(480, 'a'));
  ck_assert(copy.at(49).at(48).get_allocator().arena() == other);
}
END_TEST

/* What is spliced, merged and extracted must be of one arena; inside it, no element moves. */
START_TEST(nodes_are_handed_over) {
  scratch_arena arena;
  list_of<int> left({1, 4}, arena.get()), right({2, 3}, arena.get());
  const void *at = &right.front();

  left.splice(std::next(left.begin()), right);
  ck_assert(&*std::next(left.begin()) == at && right.empty());
  ck_assert(left == list_of<int>({1, 2, 3, 4}, arena.get()));
#if __cplusplus >= 201703L
  map_of<int, record> from(arena.get()), to(arena.get());
  fill(from, 0, 10);
  fill(to, 10, 10);
  at = &from.begin()->second;
  to.insert(from.extract(0));
  ck_assert(&to.begin()->second == at);
  to.merge(from);
  ck_assert(from.empty() && holds(to, 20));
#endif
}
END_TEST

} // namespace

Suite *suite_containers() {
  Suite *suite = suite_create("containers");
  TCase *tests = tcase_create("containers");

  tcase_set_timeout(tests, 120);
  tcase_add_test(tests, vectors);
  tcase_add_test(tests, deques);
  tcase_add_test(tests, lists);
  tcase_add_test(tests, strings);
  tcase_add_test(tests, maps_and_sets);
  tcase_add_test(tests, hash_maps_and_sets);
  tcase_add_test(tests, short_strings);
  tcase_add_test(tests, forward_lists);
  tcase_add_test(tests, containers_in_containers);
  tcase_add_test(tests, nodes_are_handed_over);
  suite_add_tcase(suite, tests);
  return suite;
}
