/**
 * Applies an asynchronous function to each element, at most `concurrency` at once, and yields the results in
 * input order. Pulls at most that number of elements ahead. When the consumer stops early or a call fails,
 * running calls are awaited before the input is closed.
 */
export async function* mapOrdered<In, Out>(
  input: AsyncIterable<In> | Iterable<In>,
  concurrency: number,
  apply: (element: In) => Promise<Out>,
): AsyncGenerator<Out> {
  const pending: Promise<Out>[] = [];
  try {
    for await (const element of input) {
      const result = apply(element);
      result.catch(() => {}); // The error is thrown where the result is awaited.
      pending.push(result);
      if (pending.length >= concurrency) yield await (pending.shift() as Promise<Out>);
    }
    while (pending.length > 0) yield await (pending.shift() as Promise<Out>);
  } finally {
    await Promise.allSettled(pending);
  }
}
