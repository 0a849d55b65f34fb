/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir::allocator by itself: what its type promises, which arena it takes from, sizes and
 * alignments, whoever gives back, and the smart pointers and promises that are made with one.
 */
#include "arenas.h"

#include <cstdint>
#include <future>
#include <memory>
#include <new>
#include <scoped_allocator>
#include <thread>
#include <type_traits>
#include <vector>

namespace {

using traits = std::allocator_traits<weir::allocator<int>>;

static_assert(std::is_nothrow_default_constructible<weir::allocator<int>>::value, "");
static_assert(std::is_nothrow_copy_constructible<weir::allocator<int>>::value, "");
static_assert(std::is_trivially_copyable<weir::allocator<int>>::value, "");
static_assert(std::is_trivially_destructible<weir::allocator<int>>::value, "");
static_assert(std::is_nothrow_constructible<weir::allocator<int>, weir::allocator<void>>::value,
              "");
static_assert(std::is_convertible<weir::allocator<char>, weir::allocator<int>>::value, "");
static_assert(std::is_convertible<weir_arena_t *, weir::allocator<int>>::value, "");
static_assert(sizeof(weir::allocator<int>) == sizeof(void *), "");
static_assert(std::is_same<weir::allocator<>, weir::allocator<void>>::value, "");
static_assert(std::is_same<traits::rebind_alloc<char>, weir::allocator<char>>::value, "");
static_assert(std::is_same<weir::allocator<int>::rebind<void *>::other, weir::allocator<void *>>(),
              "");
static_assert(!traits::propagate_on_container_copy_assignment::value, "");
static_assert(traits::propagate_on_container_move_assignment::value, "");
static_assert(traits::propagate_on_container_swap::value, "");
static_assert(!weir::allocator<int>::is_always_equal::value, "");
static_assert(noexcept(std::declval<weir::allocator<int> &>().deallocate(nullptr, 0)), "");

bool aligned(const void *block, size_t alignment) {
  return reinterpret_cast<uintptr_t>(block) % alignment == 0;
}

START_TEST(default_is_the_default_arena) {
  default_balance balance;
  weir::allocator<int> allocator, null(nullptr);
  uint64_t before = live(nullptr);
  int *block = allocator.allocate(1000);

  ck_assert(allocator.arena() == nullptr && allocator == null);
  ck_assert(weir_arena_of(block) == nullptr);
  ck_assert_uint_ge(live(nullptr), before + 1000 * sizeof *block);
  null.deallocate(block, 1000);
}
END_TEST

START_TEST(equal_are_those_of_one_arena) {
  scratch_arena one, other;
  weir::allocator<int> ints(one);
  weir::allocator<char> chars(one);
  weir::allocator<> elsewhere(other), nowhere;

  ck_assert(ints == chars && !(ints != chars));
  ck_assert(chars != elsewhere && !(chars == elsewhere));
  ck_assert(elsewhere != nowhere && nowhere == weir::allocator<double>());
  ck_assert(weir::allocator<int>(elsewhere) == elsewhere);
  ck_assert(weir::allocator<void *>(weir::allocator<>(weir::allocator<record>(ints))) == ints);
  ck_assert(traits::select_on_container_copy_construction(ints) == ints);
  ints = weir::allocator<int>(elsewhere);
  ck_assert(ints.arena() == other);
}
END_TEST

START_TEST(blocks_come_from_the_arena) {
  default_balance balance;
  scratch_arena arena;
  weir::allocator<record> allocator(arena);

  for (size_t count : {0, 1, 2, 100, 1000, 100000}) {
    record *block = allocator.allocate(count);
    record *next = allocator.allocate(count);
    ck_assert(block != nullptr && next != nullptr && block != next);
    ck_assert(weir_arena_of(block) == arena);
    ck_assert(aligned(block, 16));
    ck_assert_uint_ge(weir_usable_size(block), count * sizeof(record));
    ck_assert_uint_ge(live(arena), 2 * count * sizeof(record));
    std::memset(static_cast<void *>(block), 0x5a, count * sizeof(record));
    allocator.deallocate(block, count);
    allocator.deallocate(next, count);
    ck_assert_uint_eq(live(arena), 0);
  }
}
END_TEST

START_TEST(null_is_ignored) {
  weir::allocator<int>().deallocate(nullptr, 0);
}
END_TEST

/* A number of elements that overflows, one over what an object may have, and one that there is no
 * memory for. */
START_TEST(too_many_elements_throw) {
  scratch_arena arena;

  for (weir_arena_t *of :
       {static_cast<weir_arena_t *>(arena), static_cast<weir_arena_t *>(nullptr)}) {
    weir::allocator<record> allocator(of);
    int lengths = 0, others = 0;

    for (size_t count : {SIZE_MAX, SIZE_MAX / 2, SIZE_MAX / sizeof(record) + 1}) {
      try {
        allocator.deallocate(allocator.allocate(count), count);
      } catch (const std::bad_array_new_length &) {
        lengths++;
      }
    }
    for (size_t count : {SIZE_MAX / sizeof(record), PTRDIFF_MAX / sizeof(record) + 1}) {
      try {
        allocator.deallocate(allocator.allocate(count), count);
      } catch (const std::bad_array_new_length &) {
        ck_abort_msg("no overflow, but bad_array_new_length");
      } catch (const std::bad_alloc &) {
        others++;
      }
    }
    ck_assert_int_eq(lengths, 3);
    ck_assert_int_eq(others, 2);
  }
}
END_TEST

template <size_t alignment> struct alignas(alignment) wide { char bytes[alignment + 8]; };

template <size_t alignment> void check_alignment(weir_arena_t *arena) {
  using type = wide<alignment>;
  std::vector<type, weir::allocator<type>> all(arena);
  weir::allocator<type> allocator(arena);
  std::vector<type *> blocks;

  for (size_t count = 0; count < 40; count++) {
    blocks.push_back(allocator.allocate(count));
    ck_assert(aligned(blocks.back(), alignment));
    ck_assert(weir_arena_of(blocks.back()) == arena);
    all.emplace_back();
    ck_assert(aligned(&all.front(), alignment) && aligned(&all.back(), alignment));
  }
  for (type *block : blocks)
    allocator.deallocate(block, 1);
  auto shared = std::allocate_shared<type>(allocator);
  ck_assert(aligned(shared.get(), alignment));
}

START_TEST(alignment_of_the_type_is_honoured) {
  default_balance balance;
  scratch_arena arena;

  for (weir_arena_t *of :
       {static_cast<weir_arena_t *>(arena), static_cast<weir_arena_t *>(nullptr)}) {
    check_alignment<1>(of);
    check_alignment<8>(of);
    check_alignment<16>(of);
    check_alignment<32>(of);
    check_alignment<64>(of);
    check_alignment<256>(of);
    check_alignment<4096>(of);
    check_alignment<65536>(of);
  }
}
END_TEST

/* Blocks are given back through an allocator of another arena, of another type, of the default
 * arena, with a wrong count, and by weir_free. */
START_TEST(any_allocator_gives_back) {
  default_balance balance;
  scratch_arena one, other;
  weir::allocator<record> from(one);

  for (int i = 0; i < 100; i++) {
    weir::allocator<record>(other).deallocate(from.allocate(5), 7);
    weir::allocator<record>().deallocate(from.allocate(1000), 0);
    weir::allocator<char>(one).deallocate(reinterpret_cast<char *>(from.allocate(1)), SIZE_MAX);
    weir::allocator<>(other).deallocate(from.allocate(3000), 1);
    weir_free(from.allocate(2));
    from.deallocate(weir::allocator<record>().allocate(10), 10);
  }
  ck_assert_uint_eq(live(one), 0);
  ck_assert_uint_eq(live(other), 0);
}
END_TEST

/* An allocator of void counts in bytes, for code that takes blocks from it all the same. */
START_TEST(void_counts_bytes) {
  scratch_arena arena;
  weir::allocator<> allocator(arena);
  using void_traits = std::allocator_traits<weir::allocator<>>;
  void *block = void_traits::allocate(allocator, 1000);

  ck_assert_uint_ge(weir_usable_size(block), 1000);
  ck_assert_uint_lt(weir_usable_size(block), 2000);
  ck_assert(weir_arena_of(block) == arena);
  void_traits::deallocate(allocator, block, 1);
}
END_TEST

START_TEST(shared_pointers) {
  default_balance balance;
  scratch_arena arena;
  weir::allocator<> allocator(arena);
  std::weak_ptr<record> weak;
  {
    auto shared = std::allocate_shared<record>(allocator, element_of<record>::make(7));
    auto copy = shared;
    weak = shared;
    ck_assert(*copy == element_of<record>::make(7));
    ck_assert_uint_gt(live(arena), sizeof(record));
  }
  ck_assert(weak.expired());
  ck_assert_uint_gt(live(arena), 0); /* the weak one still needs it */
  weak.reset();
  ck_assert_uint_eq(live(arena), 0);
  {
    weir::allocator<record> records(arena);
    std::shared_ptr<record> adopted(
        new (records.allocate(1)) record(element_of<record>::make(8)),
        [records](record *one) mutable { records.deallocate(one, 1); }, allocator);
    ck_assert_uint_gt(live(arena), sizeof(record));
    ck_assert_int_eq(adopted->number, 8);
  }
}
END_TEST

/* The shared state of a promise lies in the arena, and goes with its last user, in another thread
 * here. */
START_TEST(promises) {
  scratch_arena arena;
  std::promise<record> promise(std::allocator_arg, weir::allocator<>(arena));
  std::future<record> future = promise.get_future();

  ck_assert_uint_gt(live(arena), sizeof(record));
  std::thread([](std::promise<record> mine) { mine.set_value(element_of<record>::make(3)); },
              std::move(promise))
      .join();
  ck_assert(future.get() == element_of<record>::make(3));
  ck_assert_uint_eq(live(arena), 0);
}
END_TEST

/* With the standard's adaptor the elements of a container use its arena, too. */
START_TEST(scoped_adaptor_reaches_the_elements) {
  default_balance balance;
  scratch_arena arena, other;
  using scoped = std::scoped_allocator_adaptor<weir::allocator<arena_string>>;
  std::vector<arena_string, scoped> all(weir::allocator<arena_string>{arena});

  for (int i = 0; i < 100; i++)
    all.emplace_back(100, 'a');
  ck_assert(all.back().get_allocator().arena() == arena);
  ck_assert(weir_arena_of(all.back().data()) == arena);
  std::vector<arena_string, scoped> copy(all, weir::allocator<arena_string>{other});
  ck_assert(weir_arena_of(copy.back().data()) == other);
  ck_assert(copy == all);
}
END_TEST

/* Blocks that one thread takes and another gives back, many at once, over copies of one allocator
 * that is gone by then. */
START_TEST(threads_share_an_arena) {
  scratch_arena arena;
  std::vector<std::thread> threads;
  std::vector<std::vector<int, weir::allocator<int>>> results;
  {
    auto allocator = std::make_shared<weir::allocator<int>>(arena);
    results.resize(4, std::vector<int, weir::allocator<int>>(*allocator));
    for (auto &result : results) {
      threads.emplace_back([&result] {
        for (int i = 0; i < 20000; i++) {
          result.push_back(i);
          std::vector<int, weir::allocator<int>> other(result.get_allocator());
          other.resize(static_cast<size_t>(i % 50));
        }
      });
    }
  }
  for (auto &thread : threads)
    thread.join();
  for (auto &result : results)
    ck_assert(result.size() == 20000 && result[19999] == 19999);
  results.clear();
  ck_assert_uint_eq(live(arena), 0);
}
END_TEST

} // namespace

Suite *suite_allocator() {
  Suite *suite = suite_create("allocator");
  TCase *tests = tcase_create("allocator");

  tcase_set_timeout(tests, 120);
  tcase_add_test(tests, default_is_the_default_arena);
  tcase_add_test(tests, equal_are_those_of_one_arena);
  tcase_add_test(tests, blocks_come_from_the_arena);
  tcase_add_test(tests, null_is_ignored);
  tcase_add_test(tests, too_many_elements_throw);
  tcase_add_test(tests, alignment_of_the_type_is_honoured);
  tcase_add_test(tests, any_allocator_gives_back);
  tcase_add_test(tests, void_counts_bytes);
  tcase_add_test(tests, shared_pointers);
  tcase_add_test(tests, promises);
  tcase_add_test(tests, scoped_adaptor_reaches_the_elements);
  tcase_add_test(tests, threads_share_an_arena);
  suite_add_tcase(suite, tests);
  return suite;
}
