/** What several workers say of themselves, as one. */
import type { Counts } from '../../admin/status.js';
import type { RouteTraffic, Traffic } from '../../ports/observability.js';

type Numbers = Readonly<Record<string, number>>;

function addNumbers<Summed extends Numbers>(one: Summed, other: Summed): Summed {
  const sum: Record<string, number> = { ...one };
  for (const [name, count] of Object.entries(other)) sum[name] = (sum[name] ?? 0) + count;
  return sum as Summed;
}

export function addCounts(one: Counts, other: Counts): Counts {
  return {
    requests: addNumbers(one.requests, other.requests),
    denials: addNumbers(one.denials, other.denials),
    failures: addNumbers(one.failures, other.failures),
    shadow_denials: addNumbers(one.shadow_denials, other.shadow_denials),
    grpc_calls: addNumbers(one.grpc_calls, other.grpc_calls),
    connections_ended: addNumbers(one.connections_ended, other.connections_ended),
    stripped_fields: one.stripped_fields + other.stripped_fields,
    config_reloads: one.config_reloads,
  };
}

export function addTraffic(one: Traffic, other: Traffic): Traffic {
  const routes = new Map(one.routes.map((each) => [each.route, each]));
  for (const each of other.routes) {
    const same = routes.get(each.route);
    routes.set(each.route, same === undefined ? each : addRoutes(same, each));
  }
  return { ...one, routes: [...routes.values()] };
}

function addRoutes(one: RouteTraffic, other: RouteTraffic): RouteTraffic {
  return {
    route: one.route,
    requests: addNumbers(one.requests, other.requests),
    denials: addNumbers(one.denials as Numbers, other.denials as Numbers),
    failures: addNumbers(one.failures as Numbers, other.failures as Numbers),
    shadow_denials: addNumbers(one.shadow_denials as Numbers, other.shadow_denials as Numbers),
    duration: addLists(one.duration, other.duration),
    overhead: addLists(one.overhead, other.overhead),
  };
}

function addLists(one: readonly number[], other: readonly number[]): readonly number[] {
  return one.map((count, index) => count + (other[index] ?? 0));
}
