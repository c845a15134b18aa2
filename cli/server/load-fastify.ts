import type { fastify } from 'fastify';
import { UsageError } from '../../engine/errors.ts';

/** The major release that package.json admits; tests run with its oldest and its newest release. */
export const FASTIFY = 'fastify@5';

/** Loads Fastify, which is installed only where a server runs. Throws UsageError if it is missing. */
export async function loadFastify(
  load: () => Promise<{ readonly fastify: typeof fastify }> = () => import('fastify'),
): Promise<typeof fastify> {
  try {
    return (await load()).fastify;
  } catch (error) {
    const isMissing = error instanceof Error && 'code' in error && error.code === 'ERR_MODULE_NOT_FOUND';
    if (!isMissing) throw error;
    throw new UsageError('serve needs the package fastify, which is not installed', {
      advice: `Install it next to factorflow: npm install ${FASTIFY}`,
      cause: error,
    });
  }
}
