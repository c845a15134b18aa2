/**
 * Compiles cpu/assembly to WebAssembly twice, with relaxed SIMD's fused multiply-add and without, and writes both as base64
 * to cpu/generated/kernels-wasm.ts. The same sources give the same file, which is left alone when nothing changed.
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { main as compileAssembly } from 'assemblyscript/asc';

const root = fileURLToPath(new URL('..', import.meta.url));
const target = `${root}cpu/generated/kernels-wasm.ts`;

/** The module has no runtime, data or globals of its own: it works on the shared memory that it imports. */
const options = ['--runtime', 'stub', '--importMemory', '--sharedMemory', '--maximumMemory', '65536', '--noExportMemory', '-O3', '--noAssert'];

async function compile(features: readonly string[]): Promise<Uint8Array> {
  let binary: Uint8Array | undefined;
  const enable = features.flatMap((feature) => ['--enable', feature]);
  const args = ['cpu/assembly/index.ts', '--baseDir', root, ...options, ...enable, '--outFile', 'kernels.wasm'];
  const { error, stderr } = await compileAssembly(args, {
    writeFile: (_name: string, contents: Uint8Array | string) => {
      if (typeof contents !== 'string') binary = contents;
    },
  });
  if (error || binary === undefined) throw new Error(`asc failed: ${error?.message ?? 'no output'}\n${stderr.toString()}`);
  return binary;
}

const common = ['simd', 'threads', 'bulk-memory'];
const relaxed = await compile([...common, 'relaxed-simd']);
const plain = await compile(common);
const text = `/** Made by scripts/build-wasm.ts from cpu/assembly; don't edit. */
export const relaxedSimd = '${Buffer.from(relaxed).toString('base64')}';
export const simd = '${Buffer.from(plain).toString('base64')}';
`;
const before = await readFile(target, 'utf8').catch(() => '');
if (before !== text) {
  await mkdir(`${root}cpu/generated`, { recursive: true });
  await writeFile(target, text);
}
console.log(`cpu/generated/kernels-wasm.ts: ${relaxed.length} bytes with relaxed SIMD, ${plain.length} without`);
