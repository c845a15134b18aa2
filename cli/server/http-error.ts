import { CancelledError, CapacityError, FactorFlowError, UsageError } from '../../engine/errors.ts';

/** The kind of a refused request; the names stay the same between releases. */
export type HttpCode =
  | 'USAGE'
  | 'UNAUTHORIZED'
  | 'FORBIDDEN'
  | 'NOT_FOUND'
  | 'METHOD'
  | 'TOO_LARGE'
  | 'ENCODING'
  | 'BUSY'
  | 'TIMEOUT'
  | 'ENDING'
  | 'INTERNAL';

const statuses: Readonly<Record<HttpCode, number>> = {
  USAGE: 400,
  UNAUTHORIZED: 401,
  FORBIDDEN: 403,
  NOT_FOUND: 404,
  METHOD: 405,
  TOO_LARGE: 413,
  ENCODING: 415,
  BUSY: 503,
  TIMEOUT: 503,
  ENDING: 503,
  INTERNAL: 500,
};

/** Codes of requests that may be sent again a second later. */
const passing: readonly HttpCode[] = ['BUSY', 'TIMEOUT', 'ENDING'];

/** A request that is refused for a reason that HTTP has a status for. */
export class HttpError extends Error {
  readonly code: HttpCode;

  constructor(code: HttpCode, message: string) {
    super(message);
    this.code = code;
  }
}

export interface Refusal {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** True for a failure of the program, which belongs into its log. */
  readonly internal: boolean;
}

/** The answer to a request that failed. Its text never has a stack, and no text of an internal error. */
export function refusalOf(error: unknown): Refusal {
  const { code, status, message } = partsOf(error);
  return {
    status,
    headers: {
      'content-type': 'application/json; charset=utf-8',
      ...(passing.includes(code) ? { 'retry-after': '1' } : {}),
      ...(code === 'UNAUTHORIZED' ? { 'www-authenticate': 'Bearer' } : {}),
    },
    body: JSON.stringify({ error: { code, message } }),
    internal: code === 'INTERNAL',
  };
}

function partsOf(error: unknown): {
  readonly code: HttpCode;
  readonly status: number;
  readonly message: string;
} {
  if (error instanceof HttpError)
    return { code: error.code, status: statuses[error.code], message: error.message };
  if (error instanceof UsageError) return { code: 'USAGE', status: 400, message: withoutPlace(error) };
  if (error instanceof CapacityError) return { code: 'BUSY', status: 503, message: error.summary };
  // Work is cancelled when the client has gone, or when the server ends before it.
  if (error instanceof CancelledError) return { code: 'ENDING', status: 503, message: 'cancelled' };
  const status = statusOf(error);
  if (status === 413)
    return { code: 'TOO_LARGE', status, message: 'the body is larger than this server takes' };
  if (status === 415)
    return { code: 'USAGE', status, message: 'the body must be JSON: send content-type: application/json' };
  // Fastify's own refusals, such as a body that is not JSON. Its messages are about the request alone.
  if (status !== undefined && status < 500)
    return { code: status === 404 ? 'NOT_FOUND' : 'USAGE', status, message: brief((error as Error).message) };
  if (status === 503) return { code: 'ENDING', status, message: 'the server is ending' };
  return { code: 'INTERNAL', status: 500, message: 'internal error' };
}

/** The message without phase, file and row: clients need not know the server's files. */
function withoutPlace({ summary, details: { advice } }: UsageError): string {
  return advice === undefined ? summary : `${summary}. ${advice}`;
}

/** Fastify quotes paths of any length. */
const brief = (text: string) => (text.length > 200 ? `${text.slice(0, 200)}...` : text);

/** The status that Fastify gave an error; undefined for an error of the library. */
function statusOf(error: unknown): number | undefined {
  if (error instanceof FactorFlowError || !(error instanceof Error)) return undefined;
  return 'statusCode' in error && typeof error.statusCode === 'number' ? error.statusCode : undefined;
}
