// graphile-worker.mjs HOST DATABASE default|batched: graphile-worker with 24 concurrent jobs, as in
// its own benchmark. "batched" is its fastest mode: it fetches 500 jobs at once and writes
// completions in batches.
import { Logger, makeWorkerUtils, run } from 'graphile-worker'
import { answerRounds, inChunks, payload, Watch } from './rounds.mjs'

const AT_ONCE = 24
const [host, database, mode] = process.argv.slice(2)
const batched = mode === 'batched'
const quiet = new Logger(() => () => {})
const preset = {
  worker: {
    connectionString: `postgres://postgres@/${database}?host=${encodeURIComponent(host)}`,
    concurrentJobs: AT_ONCE,
    maxPoolSize: AT_ONCE + 2,
    logger: quiet,
    ...(batched ? { localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 } : {}),
  },
}

const utils = await makeWorkerUtils({ preset })
await utils.migrate()

async function round(n) {
  const watch = new Watch(n)
  await inChunks(n, (m) => utils.addJobs(Array.from({ length: m }, () => ({ identifier: 'mail', payload }))))
  const mail = () => {
    watch.start()
    watch.done()
  }
  const runner = await run({ preset, taskList: { mail }, noHandleSignals: true })
  await watch.all
  await runner.stop() // writes the completions that are still to be written: not counted either
  return watch.seconds
}

await answerRounds('graphile-worker', round)
