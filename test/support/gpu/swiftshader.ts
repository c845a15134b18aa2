/**
 * SwiftShader, a Vulkan driver that computes on the processor, from the package @sparticuz/chromium: unpacked
 * to build/swiftshader, and named in the environment, which a process must have before it starts.
 * vitest.config.ts does that for the tests' processes.
 */
import { existsSync, globSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { makeFolder, unpackTar } from '../browser/unpack-chromium.ts';

const folder = resolve(import.meta.dirname, '../../../build/swiftshader');

/** The reason why there is no SwiftShader, or undefined when the environment names it now. */
export function prepareSwiftShader(env: Record<string, string | undefined>): string | undefined {
  if (process.platform !== 'linux' || process.arch !== 'x64')
    return `SwiftShader is unpacked on Linux x64 only, not on ${process.platform} ${process.arch}`;
  try {
    if (!existsSync(join(folder, 'libvk_swiftshader.so')))
      makeFolder(folder, (fresh) => unpackTar('swiftshader.tar.br', fresh));
  } catch (error) {
    return `SwiftShader could not be unpacked: ${error instanceof Error ? error.message : String(error)}`;
  }
  const [icd] = globSync('*.json', { cwd: folder });
  env.VK_DRIVER_FILES = join(folder, icd);
  env.LD_LIBRARY_PATH = [folder, env.LD_LIBRARY_PATH].filter(Boolean).join(':');
  env.XDG_RUNTIME_DIR ??= folder;
  return undefined;
}
