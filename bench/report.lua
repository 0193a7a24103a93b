-- wrk prints its figures as one line of JSON, which bench/lib/load.py reads.
-- Latencies are microseconds. wrk counts statuses above 399 only; that nothing
-- but 200 comes otherwise is watched by the client of bench/lib.
done = function(summary, latency)
  local errors = summary.errors
  print(string.format(
    'JSON {"requests":%d,"microseconds":%d,"refused":%d,"broken":%d,"timeouts":%d,"bad_status":%d,'
      .. '"p50":%.0f,"p99":%.0f,"p99_9":%.0f,"max":%.0f}',
    summary.requests, summary.duration, errors.connect, errors.read + errors.write, errors.timeout,
    errors.status, latency:percentile(50), latency:percentile(99), latency:percentile(99.9), latency.max))
end
