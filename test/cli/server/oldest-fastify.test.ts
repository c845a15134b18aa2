/**
 * The routes with the oldest release of Fastify that package.json admits, in `npm run test:deep`; the other tests
 * have the newest.
 */
import { readFileSync } from 'node:fs';
import { expect, it, vi } from 'vitest';
import { isDeep } from '../../support/deep.ts';

vi.mock('fastify', () => import('fastify-5.0'));
if (isDeep) await import('./routes.test.ts');

it('is the oldest that package.json admits', () => {
  const { devDependencies, peerDependencies } = JSON.parse(readFileSync('package.json', 'utf8')) as Record<
    string,
    Record<string, string>
  >;
  expect(`^${devDependencies['fastify-5.0'].replace('npm:fastify@', '')}`).toBe(peerDependencies.fastify);
});
