/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arenas that are full: std::bad_alloc comes where the standard says that it may, the container is
 * what it was before, goes on working once there is room, and nothing is lost on the way.
 */
#include "arenas.h"

#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <new>
#include <unordered_map>
#include <vector>

namespace {

constexpr size_t mib = size_t{1} << 20;

template <typename T> using over = weir::allocator<T>;

/* Whether a call throws bad_alloc, and just that. */
template <typename Call> bool runs_out(Call call) {
  try {
    call();
  } catch (const std::bad_array_new_length &) {
    ck_abort_msg("a length that overflows");
  } catch (const std::bad_alloc &) {
    return true;
  }
  return false;
}

/* Put elements into a container until its arena is full: it must then hold just what was put in. */
template <typename Container> int fill_up(Container &container) {
  int count = 0;

  while (count < 1000000 && !runs_out([&] {
           container.insert(container.end(),
                            element_of<typename Container::value_type>::make(count));
         }))
    count++;
  ck_assert_msg(count < 1000000, "the arena has no limit");
  ck_assert_uint_eq(container.size(), static_cast<size_t>(count));
  int number = 0;
  bool good = true;
  for (const auto &one : container)
    good = good && one == element_of<typename Container::value_type>::make(number++);
  ck_assert(good);
  return count;
}

template <typename Container> void check_full(weir_arena_t *arena) {
  {
    Container container(arena);
    int count = fill_up(container);
    ck_assert_int_gt(count, 100);

    /* A copy has no room; the original is as it was, and so is the arena. */
    uint64_t before = live(arena);
    ck_assert(runs_out([&] {
      Container copy(container);
      Container another(container);
      Container third(container);
    }));
    ck_assert_uint_eq(live(arena), before);
    ck_assert_uint_eq(container.size(), static_cast<size_t>(count));

    /* With what was taken out there is room again. */
    container.clear();
    ck_assert_int_gt(fill_up(container), 100);
  }
  ck_assert_uint_eq(live(arena), 0);
}

/* By number and in order, as fill_up walks it. */
using ordered_map = std::map<int, record, std::less<int>, over<std::pair<const int, record>>>;

void check_all_full(weir_arena_t *arena) {
  check_full<std::vector<int, over<int>>>(arena);
  check_full<std::vector<record, over<record>>>(arena);
  check_full<std::deque<record, over<record>>>(arena);
  check_full<std::list<record, over<record>>>(arena);
  check_full<arena_string>(arena);
  check_full<ordered_map>(arena);
}

START_TEST(containers_survive_the_limit) {
  default_balance balance;
  scratch_arena arena(2 * mib);

  check_all_full(arena);
}
END_TEST

START_TEST(containers_survive_a_full_buffer) {
  static char buffer[2 * mib];
  default_balance balance;
  scratch_arena arena(buffer, sizeof buffer);

  check_all_full(arena);
}
END_TEST

START_TEST(hash_maps_survive) {
  scratch_arena arena(2 * mib);
  {
    std::unordered_map<int, record, std::hash<int>, std::equal_to<int>,
                       over<std::pair<const int, record>>>
        map(arena.get());
    int count = 0;

    while (count < 1000000 &&
           !runs_out([&] { map.emplace(count, element_of<record>::make(count)); }))
      count++;
    ck_assert_int_lt(count, 1000000);
    ck_assert_uint_eq(map.size(), static_cast<size_t>(count));
    bool good = true;
    for (int i = 0; i < count; i++)
      good = good && map.at(i) == element_of<record>::make(i);
    ck_assert(good);
    ck_assert(runs_out([&] { map.rehash(8 * mib); }));
    for (int i = 0; i < count; i++)
      map.erase(i);
    ck_assert(map.empty());
    ck_assert(!runs_out([&] { map.emplace(1, element_of<record>::make(1)); }));
  }
  ck_assert_uint_eq(live(arena), 0);
}
END_TEST

/* One payload that does not fit leaves everything alone. */
START_TEST(a_payload_does_not_fit) {
  scratch_arena arena(4 * mib);
  std::vector<char, over<char>> payload(mib, 'a', arena.get());
  const char *at = payload.data();

  ck_assert(runs_out([&] { payload.reserve(8 * mib); }));
  ck_assert(runs_out([&] { payload.resize(8 * mib); }));
  ck_assert(runs_out([&] { payload.insert(payload.begin(), 8 * mib, 'b'); }));
  ck_assert(payload.data() == at && payload.size() == mib && payload[mib - 1] == 'a');
  ck_assert(runs_out([&] { std::vector<record, over<record>> more(mib, arena.get()); }));
  ck_assert(!runs_out([&] { payload.resize(2 * mib); }));
  ck_assert(payload[mib - 1] == 'a');
}
END_TEST

START_TEST(shared_pointers_leave_nothing) {
  scratch_arena arena(mib);
  std::vector<std::shared_ptr<record>> all;

  ck_assert(runs_out([&] {
    for (int i = 0; i < 1000000; i++)
      all.push_back(std::allocate_shared<record>(over<record>(arena), element_of<record>::make(i)));
  }));
  ck_assert_uint_gt(all.size(), 1000);
  bool good = true;
  for (size_t i = 0; i < all.size(); i++)
    good = good && *all[i] == element_of<record>::make(static_cast<int>(i));
  ck_assert(good);
  all.clear();
  ck_assert_uint_eq(live(arena), 0);
}
END_TEST

/* Something of everything, which runs out at a different place for each size of the arena: nothing
 * is ever left behind, and from some size on it does not run out. */
void everything(weir_arena_t *arena) {
  ordered_map map(arena);
  std::list<arena_string, over<arena_string>> texts(arena);
  std::vector<std::shared_ptr<record>, over<std::shared_ptr<record>>> shared(arena);

  for (int i = 0; i < 200; i++) {
    map.emplace(i, element_of<record>::make(i));
    texts.emplace_back(static_cast<size_t>(50 + 20 * i), 'a', over<char>(arena));
    shared.push_back(std::allocate_shared<record>(over<record>(arena)));
  }
  ordered_map copy(map);
  std::list<arena_string, over<arena_string>> others(arena);
  others = texts;
  others.swap(texts);
  copy = ordered_map(arena);
  shared.insert(shared.begin(), shared.begin(), shared.end());
}

START_TEST(every_place_to_run_out) {
  static char buffer[4 * mib];
  default_balance balance;
  int failures = 0, successes = 0;
  const size_t first = weir_arena_buffer_min();

  for (size_t size = first; size < sizeof buffer; size += size / 16) {
    scratch_arena arena(buffer, size);
    if (runs_out([&] { everything(arena); }))
      failures++;
    else
      successes++;
    ck_assert_uint_eq(live(arena), 0);
  }
  ck_assert_int_gt(failures, 10);
  ck_assert_int_gt(successes, 3);
}
END_TEST

} // namespace

Suite *suite_limits() {
  Suite *suite = suite_create("limits");
  TCase *tests = tcase_create("limits");

  tcase_set_timeout(tests, 120);
  tcase_add_test(tests, containers_survive_the_limit);
  tcase_add_test(tests, containers_survive_a_full_buffer);
  tcase_add_test(tests, hash_maps_survive);
  tcase_add_test(tests, a_payload_does_not_fit);
  tcase_add_test(tests, shared_pointers_leave_nothing);
  tcase_add_test(tests, every_place_to_run_out);
  suite_add_tcase(suite, tests);
  return suite;
}
