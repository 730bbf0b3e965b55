// SPDX-License-Identifier: Apache-2.0
#include "lb/data_plane.h"

#include <fmt/format.h>
#include <rte_lcore.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "lb/flow/flow_scan.h"
#include "lb/flow/lookup.h"
#include "lb/tsc_clock.h"

namespace holdfast {
namespace {

/// By the kernel, now.
Instant boot_time() { return TscClock(rte_get_tsc_hz()).now(); }

}  // namespace

DataPlane::DataPlane(Ports ports, unsigned workers)
    : start_(boot_time()), ports_(std::move(ports)), slot_(workers) {}

DataPlane::~DataPlane() { stop(); }

Result<std::unique_ptr<DataPlane>> DataPlane::open(const Config& config) {
  const DataplaneConfig& wanted = config.dataplane;
  auto ports = Ports::open(config);
  if (!ports) return tl::unexpected(ports.error());

  std::unique_ptr<DataPlane> plane(new DataPlane(std::move(*ports), wanted.workers));
  try {
    for (unsigned i = 0; i < wanted.workers; ++i) {
      const WorkerThread::Options options{
          .index = i,
          .cpu = plane->ports_.worker_cpus()[i],
          .busy_poll = wanted.busy_poll,
          .icmp_relay_rate = wanted.icmp_relay_rate,
          .icmp_answer_rate = wanted.icmp_answer_rate,
          .flows = {.capacity = wanted.flow_capacity,
                    .numa_node = static_cast<int>(rte_lcore_to_socket_id(i + 1)),
                    .sibling_lookup_rate = wanted.sibling_lookup_rate,
                    .most_held = plane->ports_.most_held(),
                    .start = plane->start_}};
      plane->workers_.push_back(
          std::make_unique<WorkerThread>(options, plane->ports_.io_of(i), plane->slot_.reader(i)));
    }
  } catch (const std::exception& failure) {
    return fail(failure.what());
  }
  std::vector<FlowContext*> flows;
  for (const auto& worker : plane->workers_) {
    flows.push_back(&worker->flows());
    spdlog::debug("worker {}: CPU {}, flow table of {}", flows.size() - 1,
                  plane->ports_.worker_cpus()[flows.size() - 1],
                  worker->flows().table.memory_description());
  }
  FlowContext::connect(flows);
  return plane;
}

Result<void> DataPlane::start() {
  try {
    for (const auto& worker : workers_) worker->start();
  } catch (const std::exception& failure) {
    stop();
    return fail(failure.what());
  }
  return {};
}

void DataPlane::stop() {
  for (const auto& worker : workers_) worker->stop();
}

void DataPlane::publish(std::unique_ptr<const Snapshot> next) {
  backend_numbers_ = std::max(backend_numbers_, next->backends.size());
  service_numbers_ = std::max(service_numbers_, next->services.size());
  slot_.publish(std::move(next));
}

void DataPlane::reclaim() { slot_.reclaim(); }

DataPlaneStats DataPlane::read_stats() const {
  DataPlaneStats stats;
  stats.backends.resize(backend_numbers_);
  stats.services.resize(service_numbers_);
  for (const auto& worker : workers_) {
    stats.workers.push_back(worker->read_stats());
    for (std::size_t i = 0; i < backend_numbers_; ++i)
      stats.backends[i] += worker->flows().backend_counters(static_cast<BackendNumber>(i));
    for (std::size_t i = 0; i < service_numbers_; ++i)
      stats.services[i] += worker->flows().service_counters(static_cast<ServiceNumber>(i));
  }
  stats.ports = ports_.read_stats();
  stats.steering = ports_.read_steering();
  return stats;
}

std::vector<DropSample> DataPlane::read_drop_samples() const {
  std::vector<DropSample> latest;
  for (std::size_t i = 0; i < kDropReasonCount; ++i) {
    std::optional<DropSample> newest;
    for (unsigned worker = 0; worker < workers_.size(); ++worker) {
      auto sample = workers_[worker]->drop_samples().read(static_cast<DropReason>(i));
      if (!sample || (newest && newest->at >= sample->at)) continue;
      sample->worker = worker;
      newest = sample;
    }
    if (newest) latest.push_back(*newest);
  }
  return latest;
}

std::vector<const FlowTable*> DataPlane::tables() const {
  std::vector<const FlowTable*> tables;
  for (const auto& worker : workers_) tables.push_back(&worker->flows().table);
  return tables;
}

FlowAnswer DataPlane::look_up(const FlowQuestion& question) const {
  return look_up_flow(question, *slot_.current(), tables());
}

std::optional<FlowPosition> DataPlane::read_flows(FlowPosition from, std::uint64_t places,
                                                  const FlowVisitor& visit) const {
  // Not the workers' own reading of the clock, which is theirs alone.
  const auto now = std::chrono::floor<FlowTime>(boot_time() - start_);
  return scan_flows(tables(), now, from, places, visit);
}

StreamRecords DataPlane::read_streams(ServiceNumber service) const {
  StreamRecords sum;
  for (const auto& worker : workers_) sum += worker->flows().counts.streams.read(service);
  return sum;
}

}  // namespace holdfast
