/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir::memory_resource: alignments, failure, equality; the containers of std::pmr over it, between
 * two arenas; and the standard's own resources that take their memory from it.
 */
#include "arenas.h"

#ifdef WEIR_HAS_MEMORY_RESOURCE

#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <memory_resource>
#include <new>
#include <set>
#include <thread>
#include <type_traits>
#include <unordered_map>
#include <vector>

namespace {

static_assert(std::is_nothrow_default_constructible_v<weir::memory_resource>);
static_assert(std::is_copy_constructible_v<weir::memory_resource>);
static_assert(std::is_copy_assignable_v<weir::memory_resource>);
static_assert(!std::is_convertible_v<weir_arena_t *, weir::memory_resource>);

constexpr int many = 300;
constexpr int few = 90;

bool aligned(const void *block, size_t alignment) {
  return reinterpret_cast<uintptr_t>(block) % alignment == 0;
}

START_TEST(default_is_the_default_arena) {
  default_balance balance;
  weir::memory_resource resource, null(nullptr);
  void *block = resource.allocate(1000);

  ck_assert(resource.arena() == nullptr && resource == null);
  ck_assert(weir_arena_of(block) == nullptr);
  null.deallocate(block, 1000);
}
END_TEST

START_TEST(alignments_are_honoured) {
  default_balance balance;
  scratch_arena arena;

  for (weir_arena_t *of : {arena.get(), static_cast<weir_arena_t *>(nullptr)}) {
    weir::memory_resource resource(of);
    for (size_t alignment = 1; alignment <= size_t{1} << 20; alignment *= 2) {
      for (size_t size : {size_t{0}, size_t{1}, size_t{24}, alignment, 3 * alignment + 1}) {
        void *block = resource.allocate(size, alignment);
        ck_assert(block != nullptr && aligned(block, alignment));
        ck_assert(weir_arena_of(block) == of);
        ck_assert_uint_ge(weir_usable_size(block), size);
        std::memset(block, 0x5a, size);
        resource.deallocate(block, size, alignment);
      }
    }
  }
}
END_TEST

/* The size and the alignment that come back with a block may be wrong. */
START_TEST(wrong_sizes_do_not_matter) {
  scratch_arena one, other;
  weir::memory_resource resource(one), elsewhere(other);

  for (size_t size = 0; size < 100000; size += 1 + size / 8) {
    resource.deallocate(resource.allocate(size), 1, 1);
    resource.deallocate(resource.allocate(size, 256), 3 * size);
    elsewhere.deallocate(resource.allocate(size), size);
    weir_free(resource.allocate(size));
  }
  ck_assert_uint_eq(live(one), 0);
}
END_TEST

/* Whether a call throws bad_alloc. */
template <typename Call> bool runs_out(Call call) {
  try {
    call();
  } catch (const std::bad_alloc &) {
    return true;
  }
  return false;
}

START_TEST(failure_throws) {
  scratch_arena arena(size_t{2} << 20);
  weir::memory_resource resource(arena);
  volatile size_t much = SIZE_MAX / 2 + 1;

  ck_assert(runs_out([&] { resource.deallocate(resource.allocate(much), 1); }));
  ck_assert(runs_out([&] { resource.deallocate(resource.allocate(much, 64), 1); }));
  ck_assert(runs_out([&] { resource.deallocate(resource.allocate(size_t{3} << 20), 1); }));
  ck_assert(runs_out([&] { resource.deallocate(weir::memory_resource().allocate(much), 1); }));
  {
    std::pmr::vector<std::pmr::string> all(&resource);
    ck_assert(runs_out([&] {
      for (int i = 0; i < 1000000; i++)
        all.emplace_back(100, 'a');
    }));
    ck_assert_uint_gt(all.size(), 1000);
    bool good = true;
    for (const auto &text : all)
      good = good && text == std::pmr::string(100, 'a');
    ck_assert(good);
  }
  ck_assert_uint_eq(live(arena), 0);
}
END_TEST

/* Counts what passes through it. */
class counting_resource : public weir::memory_resource {
public:
  using weir::memory_resource::memory_resource;
  int calls = 0;

protected:
  void *do_allocate(size_t size, size_t alignment) override {
    calls++;
    return weir::memory_resource::do_allocate(size, alignment);
  }
};

START_TEST(equal_are_those_of_one_arena) {
  scratch_arena one, other;
  weir::memory_resource first(one), second(one), elsewhere(other), nowhere;
  weir::memory_resource copy(elsewhere);
  counting_resource counting(one);
  std::pmr::monotonic_buffer_resource buffer(&first);

  ck_assert(first == first && first == second && copy == elsewhere);
  ck_assert(first != elsewhere && first != nowhere);
  ck_assert(nowhere == weir::memory_resource());
  for (std::pmr::memory_resource *foreign :
       {std::pmr::new_delete_resource(), std::pmr::null_memory_resource(),
        static_cast<std::pmr::memory_resource *>(&buffer)}) {
    ck_assert(first != *foreign && *foreign != first);
  }
#ifdef __cpp_rtti
  ck_assert(first == counting && counting == first);
#endif
  ck_assert(counting != elsewhere && elsewhere != counting);
  std::pmr::vector<record> records(100, &counting);
  ck_assert_int_eq(counting.calls, 1);
  copy = first;
  ck_assert(copy == second && copy.arena() == one);
}
END_TEST

/* A resource may be given another arena while its blocks are out: they find their way back. */
START_TEST(resources_are_copied_and_assigned) {
  scratch_arena one, other;
  weir::memory_resource resource(one);
  std::pmr::list<record> list(&resource);

  fill(list, 0, 10);
  weir::memory_resource copy(resource);
  std::pmr::list<record> more(list, &copy);
  resource = weir::memory_resource(other);
  fill(list, 10, 10);
  ck_assert_uint_gt(live(one), 0);
  ck_assert_uint_gt(live(other), 0);
  ck_assert(more.size() == 10 && list.size() == 20);
}
END_TEST

/* Containers of std::pmr keep their resource for life; elements change hands between equal ones. */
template <typename Container> void check_container(weir_arena_t *first, weir_arena_t *second) {
  weir::memory_resource resource(first), alike(first), elsewhere(second);
  Container one(&resource), other(&elsewhere), third(&alike);

  fill(one, 0, many);
  fill(other, 0, few);
  const void *at = &*one.begin();
  third = std::move(one);
  ck_assert(holds(third, many) && &*third.begin() == at);
  other = std::move(third);
  ck_assert(holds(other, many) && other.get_allocator().resource() == &elsewhere);
  ck_assert_int_eq(&*other.begin() == at, first == second);
  third = other;
  ck_assert(holds(third, many) && holds(other, many));
  Container copy(third, &elsewhere);
  ck_assert(holds(copy, many));
  copy.swap(other); /* of one resource, as the standard demands */
  ck_assert(holds(copy, many) && holds(other, many));
}

template <typename Container> void check_containers() {
  default_balance balance;
  scratch_arena one, other;
  weir_arena_t *arenas[] = {one, other, nullptr};

  for (weir_arena_t *first : arenas) {
    for (weir_arena_t *second : arenas) {
      check_container<Container>(first, second);
      ck_assert_uint_eq(live(one), 0);
      ck_assert_uint_eq(live(other), 0);
    }
  }
}

START_TEST(pmr_sequences) {
  check_containers<std::pmr::vector<record>>();
  check_containers<std::pmr::deque<record>>();
  check_containers<std::pmr::list<record>>();
  check_containers<std::pmr::string>();
}
END_TEST

START_TEST(pmr_maps) {
  check_containers<std::pmr::map<int, record>>();
  check_containers<std::pmr::set<record>>();
  check_containers<std::pmr::unordered_map<int, record>>();
}
END_TEST

/* Elements of containers take from the same arena, at every depth. */
START_TEST(pmr_elements_use_the_arena) {
  default_balance balance;
  scratch_arena arena;
  weir::memory_resource resource(arena);
  std::pmr::map<int, std::pmr::vector<std::pmr::string>> all(&resource);

  for (int i = 0; i < 50; i++) {
    for (int j = 0; j < i; j++)
      all[i].emplace_back(static_cast<size_t>(100 + j), 'a');
  }
  ck_assert(all[49][48].get_allocator().resource() == &resource);
  ck_assert(weir_arena_of(all[49][48].data()) == arena);
  ck_assert(weir_arena_of(all[49].data()) == arena);
  ck_assert_uint_gt(live(arena), 50 * 49 / 2 * 100);
}
END_TEST

START_TEST(polymorphic_allocators) {
  scratch_arena arena;
  weir::memory_resource resource(arena);
  std::pmr::polymorphic_allocator<record> allocator(&resource);
  record *block = allocator.allocate(10);

  ck_assert(weir_arena_of(block) == arena);
  allocator.deallocate(block, 10);
  auto shared = std::allocate_shared<record>(allocator, element_of<record>::make(5));
  ck_assert(*shared == element_of<record>::make(5));
  ck_assert_uint_ge(live(arena), sizeof(record));
}
END_TEST

/* As the process's default resource it serves what names none. */
START_TEST(as_the_default_resource) {
  scratch_arena arena;
  weir::memory_resource resource(arena);
  std::pmr::memory_resource *old = std::pmr::set_default_resource(&resource);
  {
    std::pmr::string text(1000, 'a');
    ck_assert(weir_arena_of(text.data()) == arena);
  }
  std::pmr::set_default_resource(old);
}
END_TEST

START_TEST(monotonic_buffers) {
  scratch_arena arena;
  weir::memory_resource resource(arena);
  {
    std::pmr::monotonic_buffer_resource buffer(1000, &resource);
    std::pmr::vector<std::pmr::string> all(&buffer);
    for (int i = 0; i < 1000; i++)
      all.emplace_back(100, 'a');
    ck_assert_uint_ge(live(arena), 100 * 1000);
    all = std::pmr::vector<std::pmr::string>(&buffer);
    buffer.release();
    ck_assert_uint_eq(live(arena), 0);
    ck_assert(aligned(buffer.allocate(100, 4096), 4096));
  }
  ck_assert_uint_eq(live(arena), 0);
}
END_TEST

template <typename Pool> void use_pool(Pool &pool, int rounds) {
  std::pmr::map<int, std::pmr::string> all(&pool);

  for (int i = 0; i < rounds; i++) {
    all[i % 97].assign(static_cast<size_t>(i % 5000), 'a');
    if (i % 3 == 0)
      all.erase(i / 2 % 97);
  }
}

START_TEST(pools) {
  scratch_arena arena;
  weir::memory_resource resource(arena);
  {
    std::pmr::unsynchronized_pool_resource pool(&resource);
    use_pool(pool, 5000);
    ck_assert_uint_gt(live(arena), 0);
    pool.release();
    ck_assert_uint_eq(live(arena), 0);
    use_pool(pool, 100);
  }
  ck_assert_uint_eq(live(arena), 0);
}
END_TEST

START_TEST(pools_of_several_threads) {
  scratch_arena arena;
  weir::memory_resource resource(arena);
  {
    std::pmr::synchronized_pool_resource pool(&resource);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++)
      threads.emplace_back([&pool] { use_pool(pool, 3000); });
    for (auto &thread : threads)
      thread.join();
    ck_assert_uint_gt(live(arena), 0);
  }
  ck_assert_uint_eq(live(arena), 0);
}
END_TEST

} // namespace

Suite *suite_resource() {
  Suite *suite = suite_create("resource");
  TCase *tests = tcase_create("resource");

  tcase_set_timeout(tests, 120);
  tcase_add_test(tests, default_is_the_default_arena);
  tcase_add_test(tests, alignments_are_honoured);
  tcase_add_test(tests, wrong_sizes_do_not_matter);
  tcase_add_test(tests, failure_throws);
  tcase_add_test(tests, equal_are_those_of_one_arena);
  tcase_add_test(tests, resources_are_copied_and_assigned);
  tcase_add_test(tests, pmr_sequences);
  tcase_add_test(tests, pmr_maps);
  tcase_add_test(tests, pmr_elements_use_the_arena);
  tcase_add_test(tests, polymorphic_allocators);
  tcase_add_test(tests, as_the_default_resource);
  tcase_add_test(tests, monotonic_buffers);
  tcase_add_test(tests, pools);
  tcase_add_test(tests, pools_of_several_threads);
  suite_add_tcase(suite, tests);
  return suite;
}

#endif
