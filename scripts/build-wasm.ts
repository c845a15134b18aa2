/**
 * Compiles cpu/assembly to WebAssembly twice, with relaxed SIMD's fused multiply-add and without, and writes
 * both as base64 to cpu/generated/kernels-wasm.ts; cpu/assembly/loading to cpu/generated/loading-wasm.ts;
 * connectors/lines/assembly to connectors/lines/generated/plain-rows-wasm.ts; connectors/parquet/assembly to
 * connectors/parquet/generated/pages-wasm.ts; and engine/expressions/assembly to
 * engine/expressions/generated/compare-wasm.ts. The same sources give the same files, and a file is written
 * only if it changed.
 *
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { main as compileAssembly } from 'assemblyscript/asc';

const root = fileURLToPath(new URL('..', import.meta.url));

/** The modules have no runtime, data or globals of their own: they work on the memory that they import. */
const options = [
  '--runtime',
  'stub',
  '--importMemory',
  '--noExportMemory',
  '-O3',
  '--noAssert',
  '--enable',
  'simd',
  '--enable',
  'bulk-memory',
];
/** The memory of the kernels is shared by threads. */
const shared = ['--sharedMemory', '--maximumMemory', '65536', '--enable', 'threads'];

async function compile(source: string, more: readonly string[]): Promise<string> {
  let binary: Uint8Array | undefined;
  const args = [source, '--baseDir', root, ...options, ...more, '--outFile', 'module.wasm'];
  const { error, stderr } = await compileAssembly(args, {
    writeFile: (_name: string, contents: Uint8Array | string) => {
      if (typeof contents !== 'string') binary = contents;
    },
  });
  if (error || binary === undefined)
    throw new Error(`asc failed: ${error?.message ?? 'no output'}\n${stderr.toString()}`);
  return Buffer.from(binary).toString('base64');
}

async function write(
  file: string,
  sources: string,
  modules: Readonly<Record<string, string>>,
): Promise<void> {
  const target = join(root, file);
  const lines = Object.entries(modules).map(([name, code]) => `export const ${name} = '${code}';\n`);
  const text = `/** Made by scripts/build-wasm.ts from ${sources}; don't edit. */\n${lines.join('')}`;
  if (text !== (await readFile(target, 'utf8').catch(() => ''))) {
    await mkdir(dirname(target), { recursive: true });
    await writeFile(target, text);
  }
  console.log(
    `${file}: ${Object.entries(modules)
      .map(([name, code]) => `${name} ${Math.floor((code.length * 3) / 4)} bytes`)
      .join(', ')}`,
  );
}

const kernels = 'cpu/assembly/index.ts';
await write('cpu/generated/kernels-wasm.ts', 'cpu/assembly', {
  relaxedSimd: await compile(kernels, [...shared, '--enable', 'relaxed-simd']),
  simd: await compile(kernels, shared),
});
await write('cpu/generated/loading-wasm.ts', 'cpu/assembly/loading', {
  loading: await compile('cpu/assembly/loading/index.ts', []),
});
await write('connectors/lines/generated/plain-rows-wasm.ts', 'connectors/lines/assembly', {
  plainRows: await compile('connectors/lines/assembly/plain-rows.ts', []),
});
await write('connectors/parquet/generated/pages-wasm.ts', 'connectors/parquet/assembly', {
  pages: await compile('connectors/parquet/assembly/index.ts', []),
});
await write('engine/expressions/generated/compare-wasm.ts', 'engine/expressions/assembly', {
  compare: await compile('engine/expressions/assembly/compare.ts', []),
});
