/** How numbers and times are written. */

/** Seconds as a person says them: `45 s`, `12 min`, `3 h 20 min`, `6 d`. */
export function span(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 90) return `${whole} s`;
  const minutes = Math.round(whole / 60);
  if (minutes < 90) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 === 0 ? `${hours} h` : `${hours} h ${minutes % 60} min`;
  return `${Math.round(hours / 24)} d`;
}

/** The same, of which the beginning is known; `never` where it is not. */
export function age(seconds: number | null): string {
  return seconds === null ? 'never' : span(seconds);
}

/** Seconds since a time of RFC 3339. */
export function secondsSince(time: string, nowMs: number): number {
  return (nowMs - Date.parse(time)) / 1000;
}

/** Requests a second. */
export function rate(perSecond: number): string {
  if (perSecond === 0) return '0';
  if (perSecond < 0.1) return perSecond.toFixed(2);
  return perSecond < 10 ? perSecond.toFixed(1) : Math.round(perSecond).toLocaleString('en');
}

/** Seconds as a duration of a request: `850 µs`, `12 ms`, `1.2 s`. */
export function duration(seconds: number | null): string {
  if (seconds === null) return '–';
  if (seconds < 0.001) return `${Math.round(seconds * 1e6)} µs`;
  if (seconds < 1) return `${(seconds * 1000).toFixed(seconds < 0.01 ? 1 : 0)} ms`;
  return `${seconds.toFixed(1)} s`;
}

export function count(value: number): string {
  return value.toLocaleString('en');
}

/** Time of day, in the zone of whoever looks. */
export function clock(time: string | number): string {
  return new Date(time).toLocaleTimeString('en-GB');
}

/** `one`, or `many` where there are several or none. */
export function plural(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

/** A word of the machine for people: `key_unknown` is `key unknown`. */
export function words(name: string): string {
  return name.replaceAll('_', ' ');
}
