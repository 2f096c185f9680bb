// pg-boss.mjs HOST DATABASE: pg-boss with 4 workers that fetch 100 jobs and complete them together.
// It does not use work(), which polls at most twice a second.
import PgBoss from 'pg-boss'
import { answerRounds, inChunks, payload, Watch } from './rounds.mjs'

const QUEUE = 'mail'
const [host, database] = process.argv.slice(2)
const boss = new PgBoss({ host, database, user: 'postgres', max: 8, supervise: false, schedule: false })

boss.on('error', (error) => {
  throw error
})
await boss.start()
await boss.createQueue(QUEUE)

async function work(watch) {
  for (;;) {
    watch.start() // here the fetch counts
    const jobs = await boss.fetch(QUEUE, { batchSize: 100 })
    if (jobs.length === 0) return
    await boss.complete(QUEUE, jobs.map((job) => job.id))
    watch.done(jobs.length)
  }
}

async function round(n) {
  const watch = new Watch(n)
  await inChunks(n, (m) => boss.insert(Array.from({ length: m }, () => ({ name: QUEUE, data: payload }))))
  await Promise.all([work(watch), work(watch), work(watch), work(watch)])
  await watch.all
  return watch.seconds
}

await answerRounds('pg-boss', round)
