/** Why an answer is not whole. What the receiver sent is not in it. */
export class BrokenAnswer extends Error {
  readonly code = 'SALLYPORT_BROKEN_ANSWER';
}

/** A head that we would not send: a mistake of ours, for the caller's part was checked. */
export class MalformedRequest extends Error {
  readonly code = 'SALLYPORT_MALFORMED_REQUEST';
}
