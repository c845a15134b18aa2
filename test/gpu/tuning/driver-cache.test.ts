import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { keepDriverCache } from '../../../gpu/probe/cache-folder.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const root = temporaryFolder();

const card = ['null', 'nvidia0', 'nvidiactl'];

test("NVIDIA's driver is given a folder for compiled kernels", () => {
  const folder = join(root, 'caches', 'driver');
  const env: Record<string, string | undefined> = {};
  keepDriverCache(env, card, folder);
  expect(env).toEqual({ __GL_SHADER_DISK_CACHE: '1', __GL_SHADER_DISK_CACHE_PATH: folder });
  expect(existsSync(folder)).toBe(true);
});

test.each([{ __GL_SHADER_DISK_CACHE: '0' }, { __GL_SHADER_DISK_CACHE_PATH: '/elsewhere' }])(
  'variables of the user stay as they are: %o',
  (set) => {
    const folder = join(root, 'unused');
    const env: Record<string, string | undefined> = { ...set };
    keepDriverCache(env, card, folder);
    expect(env).toEqual(set);
    expect(existsSync(folder)).toBe(false);
  },
);

test('machines without a card of NVIDIA, and folders that cannot be made, leave the environment as it is', () => {
  const env: Record<string, string | undefined> = {};
  const folder = join(root, 'unused');
  keepDriverCache(env, ['null', 'dri', 'nvidiactl'], folder);
  expect(existsSync(folder)).toBe(false);
  const file = join(root, 'file');
  writeFileSync(file, '');
  keepDriverCache(env, card, join(file, 'driver'));
  expect(env).toEqual({});
});
