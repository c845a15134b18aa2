#!/usr/bin/env node
import { availableParallelism } from 'node:os';
import { unfitNode } from '../api/node-version.ts';

// Loads no other module before this check, since older versions could not parse it.
const problem = unfitNode();
if (problem === undefined) {
  // System threads that copy rows between GPUs and read files. Their number cannot change after their first
  // work.
  process.env.UV_THREADPOOL_SIZE ??= String(Math.max(4, Math.min(16, availableParallelism() >> 1)));
  const argv = process.argv.slice(2);
  const { printAnswer, quickAnswer } = await import('./quick-answer.ts');
  const answer = await quickAnswer(argv);
  if (answer === undefined) {
    (await import('./prepare-process.ts')).prepareProcess(import.meta.url.endsWith('.js'));
    process.exitCode = await (await import('./run-cli.ts')).runCli(argv);
  } else process.exitCode = await printAnswer(answer);
} else {
  process.stderr.write(`factorflow ${problem}\n`);
  process.exitCode = 2;
}
