import { createHash, timingSafeEqual } from 'node:crypto';
import { UsageError } from '../../engine/errors.ts';
import { readRegular } from '../../engine/regular-file.ts';
import { HttpError } from './http-error.ts';

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
