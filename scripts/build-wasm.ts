/**
 * Compiles the AssemblyScript to WebAssembly and writes it as base64: cpu/assembly twice, with relaxed SIMD's fused multiply-add and without, to
 * cpu/generated/kernels-wasm.ts, and connectors/parquet/assembly to connectors/parquet/generated/pages-wasm.ts. The same sources give the same file,
 * which is left alone when nothing changed.
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { main as compileAssembly } from 'assemblyscript/asc';

const root = fileURLToPath(new URL('..', import.meta.url));

/** The modules have no runtime, data or globals of their own: they work on the memory that they import. */
const options = ['--runtime', 'stub', '--importMemory', '--noExportMemory', '-O3', '--noAssert'];

async function compile(folder: string, more: readonly string[], features: readonly string[]): Promise<string> {
  let binary: Uint8Array | undefined;
  const enable = features.flatMap((feature) => ['--enable', feature]);
  const args = [`${folder}/assembly/index.ts`, '--baseDir', root, ...options, ...more, ...enable, '--outFile', 'kernels.wasm'];
  const { error, stderr } = await compileAssembly(args, {
    writeFile: (_name: string, contents: Uint8Array | string) => {
      if (typeof contents !== 'string') binary = contents;
    },
  });
  if (error || binary === undefined) throw new Error(`asc failed: ${error?.message ?? 'no output'}\n${stderr.toString()}`);
  console.log(`${folder}/assembly: ${binary.length} bytes${features.length > 0 ? ` with ${features.join(', ')}` : ''}`);
  return Buffer.from(binary).toString('base64');
}

async function writeModules(folder: string, file: string, modules: Readonly<Record<string, string>>): Promise<void> {
  const exported = Object.entries(modules).map(([name, base64]) => `export const ${name} = '${base64}';\n`);
  const text = `/** Made by scripts/build-wasm.ts from ${folder}/assembly; don't edit. */\n${exported.join('')}`;
  const target = `${root}${folder}/generated/${file}`;
  if ((await readFile(target, 'utf8').catch(() => '')) === text) return;
  await mkdir(`${root}${folder}/generated`, { recursive: true });
  await writeFile(target, text);
}

const shared = ['--sharedMemory', '--maximumMemory', '65536'];
const common = ['simd', 'threads', 'bulk-memory'];
await writeModules('cpu', 'kernels-wasm.ts', { relaxedSimd: await compile('cpu', shared, [...common, 'relaxed-simd']), simd: await compile('cpu', shared, common) });
await writeModules('connectors/parquet', 'pages-wasm.ts', { pages: await compile('connectors/parquet', [], ['bulk-memory']) });
