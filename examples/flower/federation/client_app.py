"""At each hospital: hand messages to its silo. Rows, keys and ledger are in `dpadmm silo serve`, not here."""

from flwr.clientapp import ClientApp

from dpadmm.network.transports.flower import relayed

app = ClientApp()
app.query()(relayed)
