/**
 * Of `envoy.service.auth.v3` what `Authorization/Check` takes and gives: https://github.com/envoyproxy/envoy/tree/main/api,
 * Apache-2.0, as @grpc/grpc-js-xds 1.14.1 publishes it. Written by test/check/envoy-schema.mjs.
 */
export const schema = {
  edition: 'proto3',
  nested: {
    envoy: {
      nested: {
        service: {
          nested: {
            auth: {
              nested: {
                v3: {
                  nested: {
                    CheckRequest: {
                      fields: { attributes: { type: '.envoy.service.auth.v3.AttributeContext', id: 1 } },
                    },
                    AttributeContext: {
                      fields: { request: { type: '.envoy.service.auth.v3.AttributeContext.Request', id: 4 } },
                      nested: {
                        Request: {
                          fields: { http: { type: '.envoy.service.auth.v3.AttributeContext.HttpRequest', id: 2 } },
                        },
                        HttpRequest: {
                          fields: {
                            method: { type: 'string', id: 2 },
                            headers: { keyType: 'string', type: 'string', id: 3 },
                            headerMap: { type: '.envoy.config.core.v3.HeaderMap', id: 13 },
                            path: { type: 'string', id: 4 },
                            host: { type: 'string', id: 5 },
                            scheme: { type: 'string', id: 6 },
                            query: { type: 'string', id: 7 },
                            fragment: { type: 'string', id: 8 },
                          },
                        },
                      },
                    },
                    CheckResponse: {
                      fields: {
                        status: { type: '.google.rpc.Status', id: 1 },
                        deniedResponse: { type: '.envoy.service.auth.v3.DeniedHttpResponse', id: 2 },
                        okResponse: { type: '.envoy.service.auth.v3.OkHttpResponse', id: 3 },
                      },
                    },
                    DeniedHttpResponse: {
                      fields: {
                        status: { type: '.envoy.type.v3.HttpStatus', id: 1 },
                        headers: { rule: 'repeated', type: '.envoy.config.core.v3.HeaderValueOption', id: 2 },
                        body: { type: 'string', id: 3 },
                      },
                    },
                    OkHttpResponse: {
                      fields: {
                        headers: { rule: 'repeated', type: '.envoy.config.core.v3.HeaderValueOption', id: 2 },
                        headersToRemove: { rule: 'repeated', type: 'string', id: 5 },
                        responseHeadersToAdd: {
                          rule: 'repeated',
                          type: '.envoy.config.core.v3.HeaderValueOption',
                          id: 6,
                        },
                      },
                    },
                  },
                },
              },
            },
          },
        },
        config: {
          nested: {
            core: {
              nested: {
                v3: {
                  nested: {
                    HeaderMap: {
                      fields: { headers: { rule: 'repeated', type: '.envoy.config.core.v3.HeaderValue', id: 1 } },
                    },
                    HeaderValue: {
                      fields: {
                        key: { type: 'string', id: 1 },
                        value: { type: 'string', id: 2 },
                        rawValue: { type: 'bytes', id: 3 },
                      },
                    },
                    HeaderValueOption: {
                      fields: {
                        header: { type: '.envoy.config.core.v3.HeaderValue', id: 1 },
                        append: { type: '.google.protobuf.BoolValue', id: 2 },
                        appendAction: { type: '.envoy.config.core.v3.HeaderValueOption.HeaderAppendAction', id: 3 },
                      },
                      nested: {
                        HeaderAppendAction: {
                          values: {
                            APPEND_IF_EXISTS_OR_ADD: 0,
                            ADD_IF_ABSENT: 1,
                            OVERWRITE_IF_EXISTS_OR_ADD: 2,
                            OVERWRITE_IF_EXISTS: 3,
                          },
                        },
                      },
                    },
                  },
                },
              },
            },
          },
        },
        type: {
          nested: {
            v3: {
              nested: {
                HttpStatus: { fields: { code: { type: '.envoy.type.v3.StatusCode', id: 1 } } },
                StatusCode: {
                  values: {
                    Empty: 0,
                    Continue: 100,
                    OK: 200,
                    Created: 201,
                    Accepted: 202,
                    NonAuthoritativeInformation: 203,
                    NoContent: 204,
                    ResetContent: 205,
                    PartialContent: 206,
                    MultiStatus: 207,
                    AlreadyReported: 208,
                    IMUsed: 226,
                    MultipleChoices: 300,
                    MovedPermanently: 301,
                    Found: 302,
                    SeeOther: 303,
                    NotModified: 304,
                    UseProxy: 305,
                    TemporaryRedirect: 307,
                    PermanentRedirect: 308,
                    BadRequest: 400,
                    Unauthorized: 401,
                    PaymentRequired: 402,
                    Forbidden: 403,
                    NotFound: 404,
                    MethodNotAllowed: 405,
                    NotAcceptable: 406,
                    ProxyAuthenticationRequired: 407,
                    RequestTimeout: 408,
                    Conflict: 409,
                    Gone: 410,
                    LengthRequired: 411,
                    PreconditionFailed: 412,
                    PayloadTooLarge: 413,
                    URITooLong: 414,
                    UnsupportedMediaType: 415,
                    RangeNotSatisfiable: 416,
                    ExpectationFailed: 417,
                    MisdirectedRequest: 421,
                    UnprocessableEntity: 422,
                    Locked: 423,
                    FailedDependency: 424,
                    UpgradeRequired: 426,
                    PreconditionRequired: 428,
                    TooManyRequests: 429,
                    RequestHeaderFieldsTooLarge: 431,
                    InternalServerError: 500,
                    NotImplemented: 501,
                    BadGateway: 502,
                    ServiceUnavailable: 503,
                    GatewayTimeout: 504,
                    HTTPVersionNotSupported: 505,
                    VariantAlsoNegotiates: 506,
                    InsufficientStorage: 507,
                    LoopDetected: 508,
                    NotExtended: 510,
                    NetworkAuthenticationRequired: 511,
                  },
                },
              },
            },
          },
        },
      },
    },
    google: {
      nested: {
        rpc: { nested: { Status: { fields: { code: { type: 'int32', id: 1 }, message: { type: 'string', id: 2 } } } } },
        protobuf: { nested: { BoolValue: { fields: { value: { type: 'bool', id: 1 } } } } },
      },
    },
  },
};
