import { createHash, timingSafeEqual } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { BlockList, isIP } from 'node:net';
import { UsageError } from '../../engine/errors.ts';
import { readRegular } from '../../engine/regular-file.ts';
import { shown } from '../options/kinds.ts';
import { HttpError } from './http-error.ts';

export interface Access {
  /** The address that the server listens at, or its name. */
  readonly host: string;
  /** Names that the header `host` may have in addition to the names of this machine. */
  readonly allowHosts: readonly string[];
  readonly token: string | undefined;
}

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8);
loopback.addAddress('::1', 'ipv6');

/** True for names and addresses that no other machine reaches, in any of their spellings. */
export function isLoopback(name: string): boolean {
  const kind = isIP(name);
  return kind === 0 ? name === 'localhost' : loopback.check(name, kind === 4 ? 'ipv4' : 'ipv6');
}

/**
 * A function that throws HttpError for a request whose headers the server refuses. `isOpen`: the page needs
 * no token.
 */
export function headCheck({ host, allowHosts, token }: Access) {
  const checkToken = token === undefined ? () => {} : tokenCheck(token);
  const allowed = allowHosts.map((given) => {
    const name = nameIn(given);
    if (name !== undefined) return name;
    throw new UsageError(`--allow-host takes a name such as shop.example, got ${shown(given)}`);
  });
  const isLimited = allowed.length > 0 || (token === undefined && isLoopback(host));
  return (request: FastifyRequest, isOpen: boolean): void => {
    const name = hostOf(request);
    // A page of another site can reach this machine under a name of its own (DNS rebinding).
    if (isLimited && name !== undefined && !isLoopback(name) && !allowed.includes(name))
      throw new HttpError(
        'FORBIDDEN',
        `the server does not answer to the name ${name.slice(0, 100)}. Start it with --allow-host for that name`,
      );
    refuseEncodings(request);
    if (!isOpen) checkToken(request.headers.authorization);
  };
}

/** The name in the header `host`, without its port; undefined in a request of HTTP/1.0 without it. */
function hostOf({ raw }: FastifyRequest): string | undefined {
  const given = raw.headersDistinct.host ?? [];
  // Node.js refuses requests without it by an empty answer, and takes the first of several.
  if (given.length > 1) throw new HttpError('USAGE', 'the request has two headers "host"');
  if (given.length === 0 && raw.httpVersion === '1.0') return undefined;
  const [host = ''] = given;
  const name = nameIn(host);
  if (name === undefined) throw new HttpError('USAGE', 'the request has no header "host" with a name');
  return name;
}

/** The name or address in a text such as shop.example:8080 or [::1]:80; undefined for another text. */
function nameIn(text: string): string | undefined {
  const name = /^(?:\[([\da-f:.]+)\]|([^\s:/[\]]+))(?::\d+)?$/i.exec(text);
  return name === null ? undefined : (name[1] ?? name[2]).toLowerCase();
}

/** Bodies are read as they are sent. */
function refuseEncodings({ headers }: FastifyRequest): void {
  for (const [name, plain] of [
    ['content-encoding', 'identity'],
    ['transfer-encoding', 'chunked'],
  ] as const) {
    const encoding = headers[name];
    if (encoding !== undefined && encoding.toLowerCase() !== plain)
      throw new HttpError('ENCODING', `the server takes no body with ${name} ${encoding.slice(0, 50)}`);
  }
}

/** The variable with the token, for servers without --token-file. */
const TOKEN_VARIABLE = 'FACTORFLOW_TOKEN';

const MOST_BYTES = 4096;
const LEAST_LENGTH = 16;

/** The token of a file or of the environment; undefined if requests need none. Throws UsageError. */
export function readToken(file: string | undefined, env: NodeJS.ProcessEnv): string | undefined {
  const given =
    file === undefined
      ? env[TOKEN_VARIABLE]
      : Buffer.from(readRegular(file, MOST_BYTES, { phase: 'read token' })).toString();
  if (given === undefined) return undefined;
  const token = given.trim();
  const source = file === undefined ? `the variable ${TOKEN_VARIABLE}` : `the token in ${file}`;
  if (token.length < LEAST_LENGTH || !/^[\x21-\x7e]+$/.test(token))
    throw new UsageError(`${source} must have ${LEAST_LENGTH} or more visible characters without spaces`, {
      advice: 'Make one with: openssl rand -hex 32',
    });
  return token;
}

const digestOf = (text: string) => createHash('sha256').update(text).digest();

/**
 * Throws HttpError 401 unless the header `authorization` has the token. Digests are compared, in constant
 * time, so that the time does not depend on the token or its length.
 */
export function tokenCheck(token: string): (authorization: string | undefined) => void {
  const expected = digestOf(`Bearer ${token}`);
  return (authorization) => {
    const given = (authorization ?? '').replace(/^bearer +/i, 'Bearer ');
    if (!timingSafeEqual(digestOf(given), expected))
      throw new HttpError(
        'UNAUTHORIZED',
        'the request has no header "authorization: Bearer TOKEN" that fits',
      );
  };
}
