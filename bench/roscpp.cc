/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ping and echo as two nodes of roscpp: a topic there, a topic back, TCPROS over loopback. The ping
 * makes a message, publishes it and spins until it has come back; the echo fills a new message from
 * the one it received and publishes that. So each message takes four buffers in an endpoint: what
 * is received, the message made of it, the message that is sent, and its serialised form. The first
 * is taken by roscpp's poll thread and freed by the one that spins, the last the other way round.
 */
#include "endpoint.h"

#include <string>

#include <ros/callback_queue.h>
#include <ros/ros.h>
#include <sensor_msgs/Image.h>
#include <sensor_msgs/PointCloud2.h>
#include <std_msgs/UInt8MultiArray.h>

namespace {

enum { MESSAGE_BYTES, MESSAGE_IMAGE, MESSAGE_CLOUD };

uint64_t message = MESSAGE_BYTES, queue = 10, port = 11411;

const struct bench_option options[] = {
    ENDPOINT_OPTIONS,
    {"message", BENCH_WORD, &message, 0, 0, "bytes|image|cloud",
     "UInt8MultiArray, or Image or PointCloud2, whose --size then has to fit"},
    {"queue", BENCH_COUNT, &queue, 2, 1000, NULL, "length of the queues"},
    {"port", BENCH_COUNT, &port, 1, 65535, NULL, "where rosmaster listens, on 127.0.0.1"},
};

/* ---- messages: all have their payload in a vector of bytes, `data` ---- */

void shape(std_msgs::UInt8MultiArray *) {}

void shape(sensor_msgs::Image *image) {
  image->header.frame_id = "camera";
  image->encoding = "rgb8";
  image->width = 1920;
  image->step = 3 * image->width;
  image->height = static_cast<uint32_t>(endpoint.size / image->step);
  if (endpoint.size % image->step != 0)
    bench_stop(2, "--size: an image has lines of %u bytes", image->step);
}

void shape(sensor_msgs::PointCloud2 *cloud) {
  static const char *const names[] = {"x", "y", "z", "intensity"};
  cloud->header.frame_id = "lidar";
  cloud->fields.resize(4);
  for (uint32_t i = 0; i < 4; i++) {
    cloud->fields[i].name = names[i];
    cloud->fields[i].offset = 4 * i;
    cloud->fields[i].datatype = sensor_msgs::PointField::FLOAT32;
    cloud->fields[i].count = 1;
  }
  cloud->is_dense = 1;
  cloud->point_step = 16;
  cloud->height = 1;
  cloud->width = static_cast<uint32_t>(endpoint.size / cloud->point_step);
  cloud->row_step = cloud->point_step * cloud->width;
  if (endpoint.size % cloud->point_step != 0)
    bench_stop(2, "--size: a cloud has points of %u bytes", cloud->point_step);
}

/* ---- nodes ---- */

/* What ros::spin does again and again. When it returns, the message that a callback was given is
   gone, and the buffer in which it was received. Two things may be left for a moment, both with the
   poll thread: that buffer, where it still has it in hand, and the serialised form of a message
   that was published, until the socket has taken it. */
void spin() {
  ros::getGlobalCallbackQueue()->callAvailable(ros::WallDuration(0.1));
}

uint64_t deadline() {
  return bench_now() + ENDPOINT_PATIENCE_S * uint64_t{1000000000};
}

/* Neither a name nor a file of the machine's own ROS plays a part. */
void become_node(int argc, char **argv) {
  const char *folder = getenv("BENCH_FOLDER");
  std::string master = "http://127.0.0.1:" + std::to_string(port);
  for (const char *name : {"ROS_HOSTNAME", "ROS_NAMESPACE"})
    unsetenv(name);
  setenv("ROS_IP", "127.0.0.1", 1);
  setenv("ROS_MASTER_URI", master.c_str(), 1);
  for (const char *name : {"ROS_HOME", "ROS_LOG_DIR"})
    setenv(name, folder != nullptr ? folder : ".", 1);
  ros::init(argc, argv, endpoint_is_ping() ? "weir_ping" : "weir_echo");
  for (uint64_t last = deadline(); !ros::master::check(); bench_sleep_ms(10))
    if (bench_now() > last)
      bench_stop(1, "no rosmaster answers at %s", master.c_str());
}

/*
 * Once the steady part runs, every message finds the same threads at the same work. But now and
 * then a thread is late: the poll thread still has what it received when the node already sends
 * again, or has not yet written what was published. Then one more buffer is live than ever before,
 * which is fresh memory whatever the allocator is. So that this does not fall on one message at
 * random, the warm-up makes it happen: messages go in pairs, as fast as they come back, and both
 * nodes keep the last one they received until the next is handled.
 */
template <class M> class Node {
public:
  void run() {
    if (endpoint_is_ping())
      ping();
    else
      echo();
    in.shutdown();
  }

private:
  bool is_ping = endpoint_is_ping();
  ros::NodeHandle node;
  ros::Publisher out = node.advertise<M>(is_ping ? "there" : "back", static_cast<uint32_t>(queue));
  ros::Subscriber in = node.subscribe(is_ping ? "back" : "there", static_cast<uint32_t>(queue),
                                      &Node::receive, this, ros::TransportHints().tcpNoDelay());
  typename M::ConstPtr kept;
  uint64_t come = 0, sent_ns = 0;
  bool met = false, over = false;

  void receive(const typename M::ConstPtr &got) {
    if (got->data.empty())
      return greet();
    uint64_t number = endpoint_number(got->data.data(), got->data.size());
    if (number == ENDPOINT_LAST) {
      over = true;
      return;
    }
    if (number != come)
      bench_stop(1, "message %" PRIu64 " came instead of %" PRIu64, number, come);
    if (is_ping) {
      endpoint_record(bench_now() - sent_ns);
    } else {
      M answer = *got;
      out.publish(answer);
    }
    if (++come < endpoint.warmup)
      kept = got;
    else
      kept.reset();
  }

  void publish(uint64_t number, size_t size) {
    M made;
    shape(&made);
    made.data.resize(size);
    endpoint_fill(made.data.data(), size, number);
    out.publish(made);
  }

  /* Nothing that is published before both connections stand arrives: so empty messages go until one
     comes back. */
  void greet() {
    met = true;
    if (!is_ping)
      out.publish(M());
  }

  void meet() {
    for (uint64_t last = deadline(); !met; spin()) {
      if (bench_now() > last)
        bench_stop(1, "the echo was not found in %d s", ENDPOINT_PATIENCE_S);
      if (out.getNumSubscribers() > 0)
        out.publish(M());
    }
  }

  void await(uint64_t number) {
    for (uint64_t last = deadline(); come <= number; spin())
      if (bench_now() > last)
        bench_stop(1, "message %" PRIu64 " did not come back in %d s", number, ENDPOINT_PATIENCE_S);
  }

  void warm_up() {
    for (uint64_t number = 0; number < endpoint.warmup; number++) {
      publish(number, endpoint.size);
      if (number % 2 == 1 || number + 1 == endpoint.warmup)
        await(number);
      endpoint_handled();
    }
  }

  void ping() {
    meet();
    for (warm_up(); endpoint_more(); endpoint_handled()) {
      endpoint_pace();
      sent_ns = bench_now();
      publish(endpoint.handled, endpoint.size);
      await(endpoint.handled);
    }
    publish(ENDPOINT_LAST, ENDPOINT_LEAST);
    /* The echo leaves the topic when it has read that. */
    for (uint64_t last = deadline(); out.getNumSubscribers() > 0 && bench_now() < last;)
      bench_sleep_ms(1);
  }

  void echo() {
    while (!over) {
      spin();
      while (endpoint.handled < come)
        endpoint_handled();
    }
    if (endpoint_more())
      bench_stop(1, "the end came after %" PRIu64 " messages", come);
  }
};

template <class M> void run(int argc, char **argv) {
  M trial;
  shape(&trial);
  become_node(argc, argv);
  Node<M>().run();
}

} // namespace

int main(int argc, char **argv) {
  bench_parse(argc, argv, "roscpp",
              "One of two nodes of roscpp that send messages to and fro. A rosmaster has to run.",
              options, sizeof options / sizeof *options, NULL);
  endpoint_start();
  if (message == MESSAGE_IMAGE)
    run<sensor_msgs::Image>(argc, argv);
  else if (message == MESSAGE_CLOUD)
    run<sensor_msgs::PointCloud2>(argc, argv);
  else
    run<std_msgs::UInt8MultiArray>(argc, argv);
  ros::shutdown();
  endpoint_print("roscpp");
  return 0;
}
