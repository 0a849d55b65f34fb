/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Containers over weir::allocator beside the same over std::allocator, through random operations on
 * several of them in two arenas: they hold the same at every step, each uses the arena that it
 * must, and nothing is left. CXX_SEED in the environment names the one sequence to draw.
 */
#include "arenas.h"

#include <cstdio>
#include <cstdlib>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <random>
#include <unordered_map>
#include <vector>

namespace {

template <typename T> using over = weir::allocator<T>;

template <template <typename> class A> struct kinds {
  using text = std::basic_string<char, std::char_traits<char>, A<char>>;
  using vector = std::vector<text, A<text>>;
  using deque = std::deque<text, A<text>>;
  using list = std::list<text, A<text>>;
  using map = std::map<int, text, std::less<int>, A<std::pair<const int, text>>>;
  using hash_map = std::unordered_map<int, text, std::hash<int>, std::equal_to<int>,
                                      A<std::pair<const int, text>>>;
};

using ours = kinds<weir::allocator>;
using theirs = kinds<std::allocator>;

std::string plain(const arena_string &text) {
  return std::string(text.data(), text.size());
}

const std::string &plain(const std::string &text) {
  return text;
}

/* What the steps below do to one container, by its kind: put in a text, take one out. */
template <typename Sequence> struct sequence_steps {
  template <typename Text> static void put(Sequence &all, int number, Text &&text) {
    auto at = all.begin();
    std::advance(at, number % static_cast<int>(all.size() + 1));
    all.insert(at, std::forward<Text>(text));
  }
  static void drop(Sequence &all, int number) {
    auto at = all.begin();
    std::advance(at, number % static_cast<int>(all.size()));
    all.erase(at);
  }
  template <typename Other> static bool same(const Sequence &all, const Other &other) {
    auto one = other.begin();
    for (const auto &text : all) {
      if (plain(text) != plain(*one++))
        return false;
    }
    return true;
  }
};

template <typename Map> struct map_steps {
  template <typename Text> static void put(Map &all, int number, Text &&text) {
    all[number % 200] = std::forward<Text>(text);
  }
  static void drop(Map &all, int number) {
    for (int i = 0; i < 200 && all.erase((number + i) % 200) == 0; i++)
      continue;
  }
  template <typename Other> static bool same(const Map &all, const Other &other) {
    for (const auto &pair : all) {
      auto found = other.find(pair.first);
      if (found == other.end() || plain(pair.second) != found->second)
        return false;
    }
    return true;
  }
};

/* Three containers of ours in two arenas, and their twins. */
template <typename Ours, typename Theirs, typename OurSteps, typename TheirSteps> class twins {
public:
  twins(unsigned seed, weir_arena_t *one, weir_arena_t *other)
      : random_(seed), arenas_{one, other}, ours_{Ours(one), Ours(other), Ours(one)} {
    for (int i = 0; i < 3; i++)
      expected_[i] = ours_[i].get_allocator().arena();
  }

  void step() {
    int kind = draw(16);
    int a = draw(3), b = (a + 1 + draw(2)) % 3;

    if (kind < 8)
      put(a);
    else if (kind < 10)
      drop(a);
    else
      transfer(kind, a, b);
  }

  void compare() const {
    for (int i = 0; i < 3; i++) {
      ck_assert_uint_eq(ours_[i].size(), theirs_[i].size());
      ck_assert(OurSteps::same(ours_[i], theirs_[i]));
      ck_assert(ours_[i].get_allocator().arena() == expected_[i]);
    }
  }

private:
  int draw(int below) {
    return static_cast<int>(random_() % static_cast<unsigned>(below));
  }

  void put(int a) {
    int number = draw(10000);
    size_t length = static_cast<size_t>(draw(draw(8) == 0 ? 3000 : 40));
    char letter = static_cast<char>('a' + draw(26));

    OurSteps::put(ours_[a], number, arena_string(length, letter, over<char>(arenas_[draw(2)])));
    TheirSteps::put(theirs_[a], number, std::string(length, letter));
  }

  void drop(int a) {
    int number = draw(10000);

    if (ours_[a].empty())
      return;
    OurSteps::drop(ours_[a], number);
    TheirSteps::drop(theirs_[a], number);
  }

  void transfer(int kind, int a, int b) {
    weir_arena_t *arena = arenas_[draw(2)];

    switch (kind) {
    case 10:
      ours_[a] = ours_[b];
      theirs_[a] = theirs_[b];
      break;
    case 11:
      ours_[a] = std::move(ours_[b]);
      theirs_[a] = std::move(theirs_[b]);
      expected_[a] = expected_[b];
      ours_[b].clear();
      theirs_[b].clear();
      break;
    case 12:
      ours_[a].swap(ours_[b]);
      theirs_[a].swap(theirs_[b]);
      std::swap(expected_[a], expected_[b]);
      break;
    case 13: {
      Ours moved(std::move(ours_[a]), arena);
      Theirs their_moved(std::move(theirs_[a]));
      ours_[a] = std::move(moved);
      theirs_[a] = std::move(their_moved);
      expected_[a] = arena;
      break;
    }
    case 14: {
      Ours copy(ours_[a], arena);
      ours_[b] = copy;
      theirs_[b] = theirs_[a];
      break;
    }
    default:
      ours_[a] = Ours(arena);
      theirs_[a] = Theirs();
      expected_[a] = arena;
    }
  }

  std::mt19937 random_;
  weir_arena_t *arenas_[2];
  Ours ours_[3];
  Theirs theirs_[3];
  weir_arena_t *expected_[3];
};

template <typename Ours, typename Theirs, template <typename> class Steps> void run() {
  default_balance balance;
  scratch_arena one, other;
  const char *only = std::getenv("CXX_SEED");
  unsigned first = only != nullptr ? static_cast<unsigned>(std::strtoul(only, nullptr, 10)) : 1;

  for (unsigned seed = first; seed < first + (only != nullptr ? 1 : 60); seed++) {
    {
      twins<Ours, Theirs, Steps<Ours>, Steps<Theirs>> both(seed, one, other);
      try {
        for (int i = 0; i < 400; i++) {
          both.step();
          if (i % 8 == 0)
            both.compare();
        }
      } catch (const std::exception &error) {
        ck_abort_msg("CXX_SEED=%u: %s", seed, error.what());
      }
      mark_point();
    }
    ck_assert_msg(live(one) == 0 && live(other) == 0, "CXX_SEED=%u leaves something", seed);
  }
}

START_TEST(random_vectors) {
  run<ours::vector, theirs::vector, sequence_steps>();
}
END_TEST

START_TEST(random_deques) {
  run<ours::deque, theirs::deque, sequence_steps>();
}
END_TEST

START_TEST(random_lists) {
  run<ours::list, theirs::list, sequence_steps>();
}
END_TEST

START_TEST(random_maps) {
  run<ours::map, theirs::map, map_steps>();
}
END_TEST

START_TEST(random_hash_maps) {
  run<ours::hash_map, theirs::hash_map, map_steps>();
}
END_TEST

} // namespace

Suite *suite_random() {
  Suite *suite = suite_create("random");
  TCase *tests = tcase_create("random");

  tcase_set_timeout(tests, 300);
  tcase_add_test(tests, random_vectors);
  tcase_add_test(tests, random_deques);
  tcase_add_test(tests, random_lists);
  tcase_add_test(tests, random_maps);
  tcase_add_test(tests, random_hash_maps);
  suite_add_tcase(suite, tests);
  return suite;
}
