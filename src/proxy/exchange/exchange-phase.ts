/**
 * How far a request is:
 *
 * - `waiting`: for the requests before it on its connection
 * - `deciding`: nobody knows yet whether it may go on
 * - `admitted`: it may, and has a place among the requests in flight
 * - `forwarding`: it is on its way to the upstream, or already there
 * - `responding`: the client gets the upstream's response
 * - `responded`: the client was given the whole response, or the last of what it gets
 * - `finished`: recorded
 */
export type Phase = 'waiting' | 'deciding' | 'admitted' | 'forwarding' | 'responding' | 'responded' | 'finished';
