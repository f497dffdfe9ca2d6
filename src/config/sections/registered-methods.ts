/** The IANA registry of HTTP methods, and those without an entry that servers and clients in use know. */
export const registeredMethods: ReadonlySet<string> = new Set([
  'ACL', 'BASELINE-CONTROL', 'BIND', 'CHECKIN', 'CHECKOUT', 'CONNECT', 'COPY', 'DELETE', 'GET', 'HEAD', 'LABEL', 'LINK', 'LOCK', 'MERGE', 'MKACTIVITY',
  'MKCALENDAR', 'MKCOL', 'MKREDIRECTREF', 'MKWORKSPACE', 'MOVE', 'OPTIONS', 'ORDERPATCH', 'PATCH', 'POST', 'PRI', 'PROPFIND', 'PROPPATCH', 'PUT', 'REBIND',
  'REPORT', 'SEARCH', 'TRACE', 'UNBIND', 'UNCHECKOUT', 'UNLINK', 'UNLOCK', 'UPDATE', 'UPDATEREDIRECTREF', 'VERSION-CONTROL',
  // Caches, UPnP and Icecast; and QUERY, which is on its way into the registry.
  'M-SEARCH', 'NOTIFY', 'PURGE', 'QUERY', 'SOURCE', 'SUBSCRIBE', 'UNSUBSCRIBE',
]);
