/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bed on Fast DDS, as a ROS node on rmw_fastrtps uses it: a type that serialises itself with Fast
 * CDR, one thread that sleeps on a waitset, takes a message and publishes from there. Reliable,
 * keep the last 10, synchronous. Fast DDS keeps its payload buffers in a pool that it never gives
 * back, and a message is the only large block that comes and goes: it is the control, a middleware
 * under which an allocator changes little.
 *
 * UDP on the loopback interface only. Fast DDS would rather use shared memory, but leaves files
 * behind when a process is killed; data sharing is off for the same reason.
 */
#include "endpoint.h"

#include <fastcdr/Cdr.h>
#include <fastcdr/FastBuffer.h>
#include <fastdds/dds/core/condition/WaitSet.hpp>
#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/Topic.hpp>
#include <fastdds/dds/topic/TopicDataType.hpp>
#include <fastdds/dds/topic/TypeSupport.hpp>
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.h>
#include <fastrtps/utils/IPLocator.h>

#include <memory>
#include <vector>

namespace fast = eprosima::fastdds::dds;
namespace rtps = eprosima::fastrtps::rtps;
using eprosima::fastcdr::Cdr;
using Code = eprosima::fastrtps::types::ReturnCode_t;

namespace {

constexpr int depth = 10;
constexpr uint32_t socket_buffer = 4u << 20;

struct Stamped {
  uint64_t number = 0;
  std::vector<uint8_t> data;
};

/* Encapsulation, number and the length of the data. */
constexpr uint32_t fixed_part = 4 + 8 + 4;

class StampedType : public fast::TopicDataType {
public:
  StampedType() {
    setName("weir_bench::Stamped");
    /* Where payloads start: they grow to what is sent, as those of any unbounded message do. */
    m_typeSize = fixed_part;
    auto_fill_type_object(false);
    auto_fill_type_information(false);
  }

  bool serialize(void *data, rtps::SerializedPayload_t *payload) override {
    auto *message = static_cast<Stamped *>(data);
    eprosima::fastcdr::FastBuffer buffer(reinterpret_cast<char *>(payload->data),
                                         payload->max_size);
    Cdr cdr(buffer, Cdr::DEFAULT_ENDIAN, Cdr::DDS_CDR);
    payload->encapsulation = cdr.endianness() == Cdr::BIG_ENDIANNESS ? CDR_BE : CDR_LE;
    try {
      cdr.serialize_encapsulation();
      cdr << message->number << message->data;
    } catch (const eprosima::fastcdr::exception::Exception &) {
      return false;
    }
    payload->length = static_cast<uint32_t>(cdr.getSerializedDataLength());
    return true;
  }

  bool deserialize(rtps::SerializedPayload_t *payload, void *data) override {
    auto *message = static_cast<Stamped *>(data);
    eprosima::fastcdr::FastBuffer buffer(reinterpret_cast<char *>(payload->data), payload->length);
    Cdr cdr(buffer, Cdr::DEFAULT_ENDIAN, Cdr::DDS_CDR);
    try {
      cdr.read_encapsulation();
      cdr >> message->number >> message->data;
    } catch (const eprosima::fastcdr::exception::Exception &) {
      return false;
    }
    return true;
  }

  std::function<uint32_t()> getSerializedSizeProvider(void *data) override {
    return [data] {
      return fixed_part + static_cast<uint32_t>(static_cast<Stamped *>(data)->data.size());
    };
  }

  void *createData() override {
    return new Stamped;
  }

  void deleteData(void *data) override {
    delete static_cast<Stamped *>(data);
  }

  bool getKey(void *, rtps::InstanceHandle_t *, bool) override {
    return false; /* it has none */
  }
};

fast::DomainParticipant *participant;
fast::DataWriter *writer;
fast::DataReader *reader;
fast::WaitSet waitset;

template <typename T> T *must(T *made, const char *what) {
  if (made == nullptr)
    bench_stop(1, "%s failed", what);
  return made;
}

void must(const Code &code, const char *what) {
  if (code != Code::RETCODE_OK)
    bench_stop(1, "%s failed with code %u", what, code());
}

fast::DomainParticipantQos loopback() {
  fast::DomainParticipantQos qos;
  auto udp = std::make_shared<eprosima::fastdds::rtps::UDPv4TransportDescriptor>();
  udp->interfaceWhiteList.emplace_back("127.0.0.1");
  /* A message comes in one burst. Where it does not fit, resending is all that would be measured.
   */
  udp->sendBufferSize = udp->receiveBufferSize = socket_buffer;
  qos.transport().use_builtin_transports = false;
  qos.transport().user_transports.push_back(udp);
  rtps::Locator_t peer; /* without a port: every participant there */
  peer.kind = LOCATOR_KIND_UDPv4;
  rtps::IPLocator::setIPv4(peer, 127, 0, 0, 1);
  qos.wire_protocol().builtin.initialPeersList.push_back(peer);
  return qos;
}

template <typename Qos> Qos quality(Qos qos) {
  qos.reliability().kind = fast::RELIABLE_RELIABILITY_QOS;
  qos.durability().kind = fast::VOLATILE_DURABILITY_QOS;
  qos.history().kind = fast::KEEP_LAST_HISTORY_QOS;
  qos.history().depth = depth;
  qos.endpoint().history_memory_policy = rtps::PREALLOCATED_WITH_REALLOC_MEMORY_MODE;
  qos.data_sharing().off();
  return qos;
}

void open_ends() {
  const char *out = endpoint_is_ping() ? "weir_ping" : "weir_echo";
  const char *in = endpoint_is_ping() ? "weir_echo" : "weir_ping";
  /* Two ends find each other by the bed's folder, and so do no others that run beside them. */
  const char *bed = getenv("BENCH_FOLDER");
  if (bed == nullptr)
    bed = "weir";
  participant =
      must(fast::DomainParticipantFactory::get_instance()->create_participant(0, loopback()),
           "create_participant");
  fast::TypeSupport type(new StampedType);
  must(type.register_type(participant), "register_type");

  fast::PublisherQos publisher_qos;
  publisher_qos.partition().push_back(bed);
  auto *publisher = must(participant->create_publisher(publisher_qos), "create_publisher");
  auto *topic = must(participant->create_topic(out, type.get_type_name(), fast::TOPIC_QOS_DEFAULT),
                     "create_topic");
  auto writer_qos = quality(fast::DataWriterQos());
  writer_qos.publish_mode().kind = fast::SYNCHRONOUS_PUBLISH_MODE;
  writer = must(publisher->create_datawriter(topic, writer_qos), "create_datawriter");

  fast::SubscriberQos subscriber_qos;
  subscriber_qos.partition().push_back(bed);
  auto *subscriber = must(participant->create_subscriber(subscriber_qos), "create_subscriber");
  topic = must(participant->create_topic(in, type.get_type_name(), fast::TOPIC_QOS_DEFAULT),
               "create_topic");
  reader = must(subscriber->create_datareader(topic, quality(fast::DataReaderQos())),
                "create_datareader");
  must(reader->get_statuscondition().set_enabled_statuses(fast::StatusMask::data_available()),
       "set_enabled_statuses");
  must(waitset.attach_condition(reader->get_statuscondition()), "attach_condition");
}

void close_ends() {
  must(waitset.detach_condition(reader->get_statuscondition()), "detach_condition");
  must(participant->delete_contained_entities(), "delete_contained_entities");
  must(fast::DomainParticipantFactory::get_instance()->delete_participant(participant),
       "delete_participant");
}

/* Until the other end's reader and writer are known here. */
void meet() {
  uint64_t deadline = bench_now() + ENDPOINT_PATIENCE_S * uint64_t{1000000000};
  fast::PublicationMatchedStatus readers;
  fast::SubscriptionMatchedStatus writers;
  do {
    if (bench_now() > deadline)
      bench_stop(1, "the other end was not found in %d s", ENDPOINT_PATIENCE_S);
    bench_sleep_ms(5);
    must(writer->get_publication_matched_status(readers), "matched readers");
    must(reader->get_subscription_matched_status(writers), "matched writers");
  } while (readers.current_count == 0 || writers.current_count == 0);
}

void await_data() {
  fast::ConditionSeq triggered;
  if (waitset.wait(triggered, eprosima::fastrtps::Duration_t(ENDPOINT_PATIENCE_S, 0)) !=
      Code::RETCODE_OK)
    bench_stop(1, "no message came in %d s", ENDPOINT_PATIENCE_S);
}

/* Take one message. False if there is none yet. */
bool take(Stamped &message) {
  fast::SampleInfo info;
  Code code = reader->take_next_sample(&message, &info);
  if (code == Code::RETCODE_NO_DATA)
    return false;
  must(code, "take_next_sample");
  return info.valid_data;
}

void publish(uint64_t number, size_t size) {
  Stamped message;
  message.number = number;
  message.data.resize(size);
  endpoint_fill(message.data.data(), size, number);
  if (!writer->write(&message))
    bench_stop(1, "write failed");
}

/* Take before waiting: what came while another message was handled wakes nobody up. */
void await_message(Stamped &message) {
  while (!take(message))
    await_data();
}

void ping_once() {
  uint64_t start = bench_now();
  publish(endpoint.handled, endpoint.size);
  Stamped message;
  await_message(message);
  endpoint_record(bench_now() - start);
  endpoint_check(message.data.data(), message.data.size());
}

void ping() {
  while (endpoint_more()) {
    endpoint_pace();
    ping_once();
    endpoint_handled();
  }
  publish(ENDPOINT_LAST, ENDPOINT_LEAST);
  must(writer->wait_for_acknowledgments(eprosima::fastrtps::Duration_t(ENDPOINT_PATIENCE_S, 0)),
       "wait_for_acknowledgments");
}

void echo_once() {
  Stamped message;
  await_message(message);
  endpoint_check(message.data.data(), message.data.size());
  if (!writer->write(&message))
    bench_stop(1, "write failed");
}

void echo() {
  while (endpoint_more()) {
    echo_once();
    endpoint_handled();
  }
  /* Not to leave before ping has all that was sent. */
  Stamped last;
  await_message(last);
  if (endpoint_number(last.data.data(), last.data.size()) != ENDPOINT_LAST)
    bench_stop(1, "there was no end after the last message");
}

const bench_option options[] = {ENDPOINT_OPTIONS};

} // namespace

int main(int argc, char **argv) {
  bench_parse(argc, argv, "fastdds",
              "One end of a round trip through Fast DDS; bench/endpoints starts both.", options,
              sizeof options / sizeof *options, nullptr);
  endpoint_start();
  open_ends();
  meet();
  if (endpoint_is_ping())
    ping();
  else
    echo();
  endpoint_print("fastdds");
  close_ends();
  return 0;
}
