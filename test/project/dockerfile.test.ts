/** The Dockerfile of the server: no lint problems, and the versions that the package asks for. */
import { validate } from 'dockerfile-utils';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, it } from 'vitest';

const root = resolve(import.meta.dirname, '../..');
const text = readFileSync(join(root, 'examples/serve/Dockerfile'), 'utf8');

it('has no problems', () => {
  expect(validate(text)).toEqual([]);
});

it('has two stages, and ends with a user without rights', () => {
  expect(text.match(/^FROM /gm)).toHaveLength(2);
  const last = text.slice(text.lastIndexOf('FROM '));
  expect(last.match(/^USER (.+)$/m)?.[1]).toBe('node');
  expect(last).not.toMatch(/^RUN /m);
});

it('installs the tested version of Fastify on a Node that the package takes', () => {
  const { peerDependencies, engines } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    readonly peerDependencies: Readonly<Record<string, string>>;
    readonly engines: { readonly node: string };
  };
  expect(text).toContain(` fastify@${peerDependencies.fastify} `);
  const node = Number(text.match(/^FROM node:(\d+)/m)?.[1]);
  expect(node).toBeGreaterThan(Number(engines.node.match(/(\d+)/)?.[1]));
});
